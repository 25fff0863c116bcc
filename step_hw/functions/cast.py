"""cast: conversion to another element type."""

from .celled import cast_op

__all__ = ["operation"]


def operation(function, operands, result):
    """One element of ``cast``."""
    return cast_op(operands[0], result)
