"""gelu: GELU in its tanh form, bf16 (error: `step_lang.numerics.MAX_ULP`)."""

from __future__ import annotations

from .elementwise import UnaryBf16

__all__ = ["Gelu"]


class Gelu(UnaryBf16):
    """GELU in its tanh form, x * sigmoid(2 sqrt(2/pi) (x + 0.044715 x**3))."""

    name = "gelu"
