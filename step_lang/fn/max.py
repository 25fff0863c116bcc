"""max: The larger element (NaN wins, -0 < +0); in accum and scan the running maximum, from the smallest value."""

from __future__ import annotations

from step_lang import numerics as num

from .elementwise import Binary
from .support import lowest

__all__ = ["Max"]


class Max(Binary):
    """The larger element (NaN wins, -0 < +0); in accum and scan the running maximum, from the smallest value."""

    name = "max"
    operation = staticmethod(num.maximum)
    foldable = True

    def neutral(self, dtype: str) -> float | int:
        return lowest(dtype)
