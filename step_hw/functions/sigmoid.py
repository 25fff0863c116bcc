"""sigmoid: 1 / (1 + e**-x), bf16."""

from .celled import unary_op

__all__ = ["operation"]


def operation(function, operands, result):
    """One element of ``sigmoid``."""
    return unary_op("sigmoid", operands, result)
