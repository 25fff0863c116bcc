"""add, sub, mul, max, div of two elements of one type: integer logic or a floating-point cell."""

from collections.abc import Sequence

from step_lang.errors import TypeMismatch
from step_lang.types import DType

from .base import ElementOp
from .celled import float_op
from .integers import integer_op, is_integer

__all__ = ["binary_op"]


def binary_op(name: str, operands: Sequence[DType], result: DType) -> ElementOp:
    """``name`` of two elements of the type of the result. Raises `UnknownFunction` where there is no hardware."""
    for dtype in operands:
        if dtype != result:
            raise TypeMismatch(f"{name} element types: {dtype} vs {result}",
                               fix="convert one with map(cast(dtype=..), ..)")
    if is_integer(result):
        return integer_op(name, result)
    return float_op(name, result)
