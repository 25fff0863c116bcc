"""silu: x / (1 + e**-x), bf16 (error: `step_lang.numerics.MAX_ULP`)."""

from __future__ import annotations

from .elementwise import UnaryBf16

__all__ = ["Silu"]


class Silu(UnaryBf16):
    """x / (1 + e**-x)."""

    name = "silu"
