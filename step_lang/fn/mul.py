"""mul: a * b; in accum and scan the running product, from 1."""

from __future__ import annotations

from step_lang import numerics as num

from .elementwise import Binary

__all__ = ["Mul"]


class Mul(Binary):
    """a * b; in accum and scan the running product, from 1."""

    name = "mul"
    operation = staticmethod(num.mul)
    foldable = True

    def neutral(self, dtype: str) -> int:
        return 1
