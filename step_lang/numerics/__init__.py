"""Bit-level numerics: what the hardware computes, defined on numpy arrays.

Arrays hold `ml_dtypes.bfloat16`, `float32`, `int8`, `int32`, `uint32` or `bool`. Subnormals are kept, rounding is to
nearest even, and every floating-point result that is not a number is the one canonical NaN (0x7FC0, 0x7FC00000).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from step_lang.errors import BadParameter

from . import dot as _dot
from .arith import add, canonical, div, maximum, mul, neg, sub
from .cast import DTYPES, cast
from .dot import dot_group, fold
from .formats import BF16, FP32, Format, bits_of, from_bits
from .unary import MAX_ULP, UNARY, unary

__all__ = [
    "BF16",
    "DTYPES",
    "FP32",
    "MAX_ULP",
    "UNARY",
    "Format",
    "Numerics",
    "add",
    "bits_of",
    "canonical",
    "cast",
    "div",
    "dot_group",
    "fold",
    "from_bits",
    "maximum",
    "mul",
    "neg",
    "sub",
    "unary",
]


@dataclass(frozen=True)
class Numerics:
    """The parameter that results depend on: `group`, the products summed before one rounding (`k_per_cycle`)."""

    group: int = 16

    def __post_init__(self) -> None:
        if not isinstance(self.group, int) or not 1 <= self.group <= 16:
            raise BadParameter(f"numerics group: {self.group!r} vs an integer from 1 to 16")

    def group_dots(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """`[n, K/group, M, N]` dot products of `a[n, M, K]` and `b[n, K, N]`, one per group along K."""
        return _dot.group_dots(a, b, self.group)

    def matmul(self, a: np.ndarray, b: np.ndarray, acc: np.ndarray | None = None) -> np.ndarray:
        """`acc + a @ b`, folded group by group (see `step_lang.numerics.dot`); `acc` defaults to +0."""
        return _dot.matmul(a, b, self.group, acc)
