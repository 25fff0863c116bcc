"""add: a + b; in accum and scan the running sum, from 0."""

from __future__ import annotations

from step_lang import numerics as num

from .elementwise import Binary

__all__ = ["Add"]


class Add(Binary):
    """a + b; in accum and scan the running sum, from 0."""

    name = "add"
    operation = staticmethod(num.add)
    foldable = True

    def neutral(self, dtype: str) -> int:
        return 0
