"""gelu: GELU in its tanh form, bf16."""

from .celled import unary_op

__all__ = ["operation"]


def operation(function, operands, result):
    """One element of ``gelu``."""
    return unary_op("gelu", operands, result)
