"""exp: e**x, bf16."""

from .celled import unary_op

__all__ = ["operation"]


def operation(function, operands, result):
    """One element of ``exp``."""
    return unary_op("exp", operands, result)
