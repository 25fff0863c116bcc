"""Integer arithmetic of one element: plain logic, wrapping, as `step_lang.numerics.arith` defines it."""

from collections.abc import Callable

from amaranth.hdl import Mux, Value

from step_lang.errors import UnknownFunction
from step_lang.types import DType

from .base import ElementOp

__all__ = ["integer_op", "is_integer", "larger"]


def is_integer(dtype: DType) -> bool:
    """Whether arithmetic on ``dtype`` is integer arithmetic."""
    return dtype.name in ("int8", "int32", "u32")


def larger(a: Value, b: Value, dtype: DType) -> Value:
    """The larger of two integers."""
    above = a >= b if dtype.name == "u32" else a.as_signed() >= b.as_signed()
    return Mux(above, a, b)


_OPERATIONS: dict[str, Callable[[Value, Value, DType], Value]] = {
    "add": lambda a, b, dtype: a + b,
    "sub": lambda a, b, dtype: a - b,
    "mul": lambda a, b, dtype: a * b,
    "max": larger,
}


def integer_op(name: str, dtype: DType) -> ElementOp:
    """The operation ``name`` on two integers of ``dtype``."""
    if not is_integer(dtype) or name not in _OPERATIONS:
        raise UnknownFunction(f"function {name!r} of {dtype} vs one with hardware")

    def place(m, lane, en, operands, cfg):
        a, b = operands
        return _OPERATIONS[name](a, b, dtype)[:dtype.bits]

    return ElementOp(place)
