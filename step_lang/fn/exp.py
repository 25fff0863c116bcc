"""exp: e**x, bf16 (error: `step_lang.numerics.MAX_ULP`)."""

from __future__ import annotations

from .elementwise import UnaryBf16

__all__ = ["Exp"]


class Exp(UnaryBf16):
    """e**x."""

    name = "exp"
