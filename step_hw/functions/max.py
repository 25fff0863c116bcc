"""max: the larger of a and b."""

from .binary import binary_op

__all__ = ["operation"]


def operation(function, operands, result):
    """One element of ``max``."""
    return binary_op("max", operands, result)
