"""Affine views: ``index = sum(i_k * stride_k)`` over a shape, both outermost first.

One size of a view of a buffer may be None, an **open** dimension: it goes on while the index is inside the buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import BadParameter, ViewOutOfRange
from ..operator import Operator, static_shape

__all__ = ["check_view", "open_view", "row_major", "view_indices", "view_pass", "visits_once"]


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides that visit ``shape`` in order."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def check_view(operator: Operator, shape: Any, stride: Any, size: int, what: str) -> tuple[tuple[int, ...],
                                                                                           tuple[int, ...]]:
    """``shape`` and ``stride`` (None: row-major over ``shape``) as tuples of ints, every index of the view being in
    ``0..size-1`` of ``what``. Raises `BadParameter`, `ViewOutOfRange`."""
    shape = static_shape(operator, "view shape", shape)
    stride = row_major(shape) if stride is None else static_shape(operator, "view stride", stride, least=-(1 << 62))
    if len(shape) != len(stride):
        raise BadParameter(f"view: {len(shape)} sizes vs {len(stride)} strides", operator=operator)
    high = sum(max(0, (n - 1) * k) for n, k in zip(shape, stride))
    low = sum(min(0, (n - 1) * k) for n, k in zip(shape, stride))
    if low < 0 or high >= size:
        raise ViewOutOfRange(
            f"view of shape {list(shape)}, stride {list(stride)}: indices {low}..{high} vs {what} 0..{size - 1}",
            operator=operator, fix="keep the view inside")
    return shape, stride


def view_indices(shape: Sequence[int], stride: Sequence[int]) -> np.ndarray:
    """Indices of the view, in the order they are visited."""
    index = np.zeros(1, dtype=np.int64)
    for n, k in zip(shape, stride):
        index = (index[:, None] + np.arange(n, dtype=np.int64) * k).reshape(-1)
    return index


def visits_once(shape: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether no index of the view occurs twice."""
    reach = 0
    for step, n in sorted((abs(k), n) for n, k in zip(shape, stride) if n > 1):
        if step <= reach:   # dimensions overlap: only their indices tell
            indices = view_indices(shape, stride)
            return len(np.unique(indices)) == len(indices)
        reach += step * (n - 1)
    return True


def open_view(operator: Operator, shape: Any, stride: Any) -> tuple[tuple[int | None, ...], tuple[int, ...]]:
    """``shape`` with one None and ``stride`` as tuples. No index is negative, and an open dimension moves on; how far
    the view reaches is only known with the buffer. Raises `BadParameter`, `ViewOutOfRange`."""
    shape = tuple(shape)
    if shape.count(None) > 1:
        raise BadParameter(f"view shape {list(shape)}: {shape.count(None)} open dimensions vs at most one",
                           operator=operator)
    at = shape.index(None)
    if stride is None:
        raise BadParameter(f"view shape {list(shape)}: an open dimension vs no stride", operator=operator,
                           fix="give the strides of all dimensions")
    closed = static_shape(operator, "view shape", [1 if size is None else size for size in shape])
    stride = static_shape(operator, "view stride", stride, least=-(1 << 62))
    if len(shape) != len(stride):
        raise BadParameter(f"view: {len(shape)} sizes vs {len(stride)} strides", operator=operator)
    if stride[at] < 1:
        raise BadParameter(f"stride of the open dimension {at}: {stride[at]} vs at least 1", operator=operator,
                           fix="let it move towards the buffer's end")
    low = sum(min(0, (n - 1) * k) for n, k in zip(closed, stride))
    if low < 0:
        raise ViewOutOfRange(f"view of shape {list(shape)}, stride {list(stride)}: index {low} vs at least 0",
                             operator=operator, fix="keep the view inside")
    return tuple(None if i == at else size for i, size in enumerate(closed)), stride


def view_pass(shape: Sequence[int | None], stride: Sequence[int], length: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices of a whole pass over a buffer of ``length`` elements, and the stops after them, the last's being
    ``len(shape)``. An open dimension has one iteration at least: an index beyond the buffer is the caller's to find."""
    index = np.zeros(1, dtype=np.int64)
    stop = np.array([len(shape)], dtype=np.int64)
    for level, n, k in zip(reversed(range(len(shape))), shape, stride):
        counts = np.full(len(index), n) if n is not None else np.maximum(1, -((index - length) // k))
        last = np.cumsum(counts) - 1
        step = np.arange(int(counts.sum())) - np.repeat(last + 1 - counts, counts)
        index = np.repeat(index, counts) + step * k
        stops = np.full(len(index), level, dtype=np.int64)
        stops[last] = stop
        stop = stops
    return index, stop
