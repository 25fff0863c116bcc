"""rsqrt: 1 / sqrt(x), bf16."""

from .celled import unary_op

__all__ = ["operation"]


def operation(function, operands, result):
    """One element of ``rsqrt``."""
    return unary_op("rsqrt", operands, result)
