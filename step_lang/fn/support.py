"""What several functions share: checks of element types, broadcasting, initial states."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from step_lang.dims import Dim, dims_equal, is_ragged
from step_lang.errors import BadParameter, TypeMismatch, ViewOutOfRange
from step_lang.lengths import check_length
from step_lang.types import DTYPES, DType, Tile, Type

__all__ = [
    "as_addresses",
    "as_constant",
    "broadcast_type",
    "check_dtype",
    "filled",
    "joined",
    "lowest",
    "numbered",
    "single_tile",
]


def check_dtype(name: str, tile: Tile, allowed: Sequence[str]) -> None:
    """Raise `TypeMismatch` unless the tile's element type is one of ``allowed``."""
    if tile.dtype.name not in allowed:
        raise TypeMismatch(f"{name} of element type {tile.dtype} vs {', '.join(allowed)}",
                           fix=f"convert it first with map(cast(dtype={allowed[0]!r}), ..)")


def joined(name: str, arrays: Sequence[np.ndarray], along: str) -> np.ndarray:
    """Tiles ``[n, rows, cols]`` joined along their rows or cols. Raises `TypeMismatch` for tiles whose sizes, known at
    run time only, differ across."""
    axis, across = (1, "cols") if along == "rows" else (2, "rows")
    sizes = [array.shape[3 - axis] for array in arrays]
    other = next((size for size in sizes if size != sizes[0]), None)
    if other is not None:
        raise TypeMismatch(f"{name} {across}: {sizes[0]} vs {other}", fix=f"join tiles of the same {across}")
    return np.concatenate(list(arrays), axis=axis)


def single_tile(name: str, types: Sequence[Type]) -> Tile:
    """The one tile type that ``name`` folds."""
    if len(types) != 1:
        raise BadParameter(f"function {name!r} folds 1 stream vs {len(types)} given")
    if not isinstance(types[0], Tile):
        raise TypeMismatch(f"function {name!r} takes tiles vs {types[0]}")
    return types[0]


def _broadcast_dim(name: str, what: str, a: Dim, b: Dim) -> Dim:
    if a == 1:
        return b
    if b == 1 or is_ragged(b) or dims_equal(a, b):
        return a
    if is_ragged(a):
        return b
    raise TypeMismatch(f"{name} {what}: {a} vs {b}", fix="operands have the same size, or 1 where one is repeated")


def broadcast_type(name: str, a: Tile, b: Tile) -> Tile:
    """Type of an elementwise operation on two tiles; a size of 1 is repeated along the other's."""
    if a.dtype != b.dtype:
        raise TypeMismatch(f"{name} element types: {a.dtype} vs {b.dtype}",
                           fix="convert one with map(cast(dtype=..), ..)")
    return Tile(_broadcast_dim(name, "rows", a.rows, b.rows), _broadcast_dim(name, "cols", a.cols, b.cols), a.dtype)


def as_constant(name: str, value: Any, dtype: DType) -> np.ndarray:
    """A number (or array of numbers) as an array of ``dtype``; floats are rounded to it, integers must fit."""
    array = np.asarray(value)
    if array.dtype.kind not in "iufb" and array.dtype != dtype.numpy:
        raise BadParameter(f"{name}: {value!r} vs a number")
    if dtype.is_float:
        with np.errstate(over="ignore"):
            return array.astype(np.float64).astype(dtype.numpy)
    least, most = (0, 1) if dtype.name == "bool" else (np.iinfo(dtype.numpy).min, np.iinfo(dtype.numpy).max)
    if array.dtype.kind == "f" and not np.array_equal(array, np.rint(array)):
        raise BadParameter(f"{name}: {value!r} vs an integer, for element type {dtype}")
    if array.size and (array.min() < least or array.max() > most):
        raise BadParameter(f"{name}: {value!r} vs {least}..{most}, the range of {dtype}")
    return array.astype(dtype.numpy)


def filled(name: str, init: Any, neutral: Any, state: Tile) -> np.ndarray:
    """The initial state ``[rows, cols]``: ``init`` (a number or a tile of numbers), or ``neutral`` where it is None.

    A dimension that is not static has size 1 in the array, to be broadcast.
    """
    shape = tuple(dim if isinstance(dim, int) else 1 for dim in (state.rows, state.cols))
    value = as_constant(f"init of {name}", neutral if init is None else init, state.dtype)
    if value.ndim not in (0, 2) or (value.ndim == 2 and value.shape != shape):
        raise BadParameter(f"init of {name}: shape {value.shape} vs {shape}")
    return np.array(np.broadcast_to(value, shape))


def lowest(dtype: str) -> float | int:
    """The neutral element of the maximum: minus infinity, or the smallest integer."""
    kind = DTYPES[dtype]
    return -math.inf if kind.is_float else int(np.iinfo(kind.numpy).min)


def numbered(name: str, counts: np.ndarray) -> np.ndarray:
    """0, 1, .. of each of ``counts``, one behind the other. Raises `ProgramError` for more than can be kept."""
    total = int(counts.sum())
    check_length(total, f"{name} of counts up to {int(counts.max(initial=0))}")
    return np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)


def as_addresses(name: str, numbers: np.ndarray) -> np.ndarray:
    """Int64 numbers as u32 scalars ``[n, 1, 1]``. Raises `ViewOutOfRange` for one that is no u32."""
    wrong = np.flatnonzero((numbers < 0) | (numbers >= 1 << 32))
    if len(wrong):
        raise ViewOutOfRange(f"{name}: address {int(numbers[wrong[0]])} vs 0..{(1 << 32) - 1}")
    return numbers.astype(np.uint32).reshape(-1, 1, 1)
