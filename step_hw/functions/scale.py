"""scale: x * constant, the constant in a register."""

from .base import ElementOp
from .binary import binary_op

__all__ = ["operation"]


def operation(function, operands, result):
    """One element of ``scale``: a multiplier whose second operand is the register ``constant`` (a bit pattern)."""
    product = binary_op("mul", operands, result)

    def place(m, name, en, operands, cfg):
        return product.place(m, name, en, [*operands, cfg["constant"]], {})

    return ElementOp(place, product.modules, product.stages, {"constant": result.bits})
