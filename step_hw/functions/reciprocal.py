"""reciprocal: 1 / x, bf16."""

from .celled import unary_op

__all__ = ["operation"]


def operation(function, operands, result):
    """One element of ``reciprocal``."""
    return unary_op("reciprocal", operands, result)
