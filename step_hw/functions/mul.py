"""mul: a * b."""

from .binary import binary_op

__all__ = ["operation"]


def operation(function, operands, result):
    """One element of ``mul``."""
    return binary_op("mul", operands, result)
