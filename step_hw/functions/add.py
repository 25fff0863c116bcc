"""add: a + b."""

from .binary import binary_op

__all__ = ["operation"]


def operation(function, operands, result):
    """One element of ``add``."""
    return binary_op("add", operands, result)
