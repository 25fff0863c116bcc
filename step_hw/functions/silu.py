"""silu: x * sigmoid(x), bf16."""

from .celled import unary_op

__all__ = ["operation"]


def operation(function, operands, result):
    """One element of ``silu``."""
    return unary_op("silu", operands, result)
