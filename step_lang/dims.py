"""Dimensions: static (an int), dynamic-regular (a SymPy symbol), ragged (a symbol that absorbs).

Shapes are tuples of dimensions, outermost first. Any expression that contains a ragged dimension is a new ragged
symbol; the functions here take a ``fresh`` callable that makes one (from `Program.fresh_ragged`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np
import sympy

from .errors import BadParameter

__all__ = [
    "Dim",
    "Ragged",
    "Shape",
    "as_dim",
    "as_shape",
    "buffer_elements",
    "buffer_symbol",
    "ceil_div",
    "count_symbol",
    "dims_equal",
    "dynamic",
    "elements",
    "format_shape",
    "is_ragged",
    "is_static",
    "product",
    "ragged",
    "shapes_equal",
    "whole",
]

Dim: TypeAlias = int | sympy.Expr
Shape: TypeAlias = tuple[Dim, ...]


class Ragged(sympy.Symbol):
    """A dimension with many values at run time."""

    def __new__(cls, name: str) -> Ragged:
        return super().__new__(cls, name, integer=True, nonnegative=True)


def _check_name(name: str) -> str:
    if not isinstance(name, str) or not name.isidentifier():
        raise BadParameter(f"dimension name: {name!r} vs an identifier")
    return name


def dynamic(name: str) -> sympy.Symbol:
    """A dynamic-regular dimension: one constant, known at run time."""
    return sympy.Symbol(_check_name(name), integer=True, nonnegative=True)


def ragged(name: str) -> Ragged:
    """A ragged dimension: many values at run time."""
    return Ragged(_check_name(name))


def as_dim(value: object) -> Dim:
    """``value`` as a dimension: a non-negative int or a SymPy expression. Raises `BadParameter`."""
    if isinstance(value, bool):
        raise BadParameter(f"dimension: {value!r} vs a non-negative int or a SymPy expression")
    if isinstance(value, sympy.Integer) or (not isinstance(value, sympy.Basic) and hasattr(value, "__index__")):
        number = int(value)
        if number < 0:
            raise BadParameter(f"dimension: {number} vs a non-negative int")
        return number
    if isinstance(value, sympy.Expr):
        return value
    raise BadParameter(f"dimension: {value!r} vs a non-negative int or a SymPy expression",
                       fix="use dynamic(name) or ragged(name) for run-time dimensions")


def whole(value: object) -> int | None:
    """``value``, of Python or numpy, as an int; None for what is none, such as a bool."""
    if isinstance(value, (bool, np.bool_, np.ndarray)):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def as_shape(values: object) -> Shape:
    """``values`` (a sequence) as a shape, outermost first. Raises `BadParameter`."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise BadParameter(f"shape: {values!r} vs a sequence of dimensions, outermost first")
    return tuple(as_dim(value) for value in values)


def is_static(dim: Dim) -> bool:
    return isinstance(dim, int)


def is_ragged(dim: Dim) -> bool:
    """Whether ``dim`` is, or contains, a ragged symbol."""
    return not isinstance(dim, int) and bool(dim.atoms(Ragged))


def dims_equal(a: Dim, b: Dim) -> bool:
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    if isinstance(a, (int, sympy.Symbol)) and isinstance(b, (int, sympy.Symbol)):
        return a == b  # as most are; to simplify a difference takes milliseconds
    return a == b or sympy.simplify(sympy.sympify(a) - sympy.sympify(b)) == 0


def shapes_equal(a: Sequence[Dim], b: Sequence[Dim]) -> bool:
    return len(a) == len(b) and all(dims_equal(x, y) for x, y in zip(a, b))


def _absorb(value: sympy.Expr | int, fresh: Callable[[], Ragged]) -> Dim:
    value = as_dim(sympy.sympify(value))
    return fresh() if not isinstance(value, Ragged) and is_ragged(value) else value


def product(dims: Iterable[Dim], fresh: Callable[[], Ragged]) -> Dim:
    """The dimension that merging ``dims`` gives. One dimension alone is itself; a ragged one absorbs the others."""
    dims = [d for d in dims if d != 1] or [1]
    if len(dims) == 1:
        return dims[0]
    return _absorb(sympy.Mul(*dims), fresh)


def ceil_div(dim: Dim, divisor: int, fresh: Callable[[], Ragged]) -> Dim:
    """``ceil(dim / divisor)``; ragged absorbs."""
    if isinstance(dim, int):
        return -(-dim // divisor)
    if divisor == 1:
        return dim
    return fresh() if is_ragged(dim) else as_dim(sympy.ceiling(dim / sympy.Integer(divisor)))


def count_symbol(prefix: Sequence[Dim]) -> Ragged:
    """The symbol that stands for the number of elements of a stream of shape ``prefix`` whose last dimension is
    ragged. It is the dimension itself where that is the only one."""
    if len(prefix) == 1 and isinstance(prefix[0], Ragged):
        return prefix[0]
    return Ragged("#" + format_shape(prefix))


def elements(shape: Sequence[Dim]) -> sympy.Expr:
    """``||X||``: how many elements a stream or buffer of this shape has.

    The product of the dimensions; those up to the innermost ragged one count as one symbol (see `count_symbol`),
    whose measured value the interpreter reports.
    """
    cut = max((i + 1 for i, dim in enumerate(shape) if is_ragged(dim)), default=0)
    factors = [count_symbol(shape[:cut])] if cut else []
    return sympy.Mul(*factors, *shape[cut:])


def buffer_symbol(prefix: Sequence[Dim]) -> Ragged:
    """The symbol that stands for the elements of the largest of the buffers of shape ``prefix``, whose last dimension
    is ragged: what on-chip memory must hold. Another than `count_symbol`, which counts them all."""
    return Ragged("#largest" + format_shape(prefix))


def buffer_elements(shape: Sequence[Dim]) -> sympy.Expr:
    """``||buffer||``: how many elements a buffer of this shape has, the largest where they differ."""
    cut = max((i + 1 for i, dim in enumerate(shape) if is_ragged(dim)), default=0)
    return sympy.Mul(*([buffer_symbol(shape[:cut])] if cut else []), *shape[cut:])


def format_shape(shape: Sequence[Dim]) -> str:
    return "[" + ", ".join(str(dim) for dim in shape) + "]"
