"""sub: a - b."""

from __future__ import annotations

from step_lang import numerics as num

from .elementwise import Binary

__all__ = ["Sub"]


class Sub(Binary):
    """a - b."""

    name = "sub"
    operation = staticmethod(num.sub)
