"""rsqrt: 1 / sqrt(x), correctly rounded, bf16 (error: `step_lang.numerics.MAX_ULP`)."""

from __future__ import annotations

from .elementwise import UnaryBf16

__all__ = ["Rsqrt"]


class Rsqrt(UnaryBf16):
    """1 / sqrt(x), correctly rounded."""

    name = "rsqrt"
