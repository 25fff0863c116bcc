"""div: a / b."""

from .binary import binary_op

__all__ = ["operation"]


def operation(function, operands, result):
    """One element of ``div``."""
    return binary_op("div", operands, result)
