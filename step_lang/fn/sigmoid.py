"""sigmoid: 1 / (1 + e**-x), bf16 (error: `step_lang.numerics.MAX_ULP`)."""

from __future__ import annotations

from .elementwise import UnaryBf16

__all__ = ["Sigmoid"]


class Sigmoid(UnaryBf16):
    """1 / (1 + e**-x)."""

    name = "sigmoid"
