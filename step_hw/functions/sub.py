"""sub: a - b."""

from .binary import binary_op

__all__ = ["operation"]


def operation(function, operands, result):
    """One element of ``sub``."""
    return binary_op("sub", operands, result)
