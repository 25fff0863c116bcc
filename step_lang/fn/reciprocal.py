"""reciprocal: 1 / x, correctly rounded, bf16 (error: `step_lang.numerics.MAX_ULP`)."""

from __future__ import annotations

from .elementwise import UnaryBf16

__all__ = ["Reciprocal"]


class Reciprocal(UnaryBf16):
    """1 / x, correctly rounded."""

    name = "reciprocal"
