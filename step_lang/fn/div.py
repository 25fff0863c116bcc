"""div: a / b (bf16), rounded once."""

from __future__ import annotations

from step_lang import numerics as num

from .elementwise import Binary

__all__ = ["Div"]


class Div(Binary):
    """a / b (bf16), rounded once."""

    name = "div"
    operation = staticmethod(num.div)
    dtypes = ("bf16",)
