"""Affine views: ``index = sum(i_k * stride_k)`` over a shape, both outermost first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import BadParameter, ViewOutOfRange
from ..operator import Operator, static_shape

__all__ = ["check_view", "row_major", "view_indices"]


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
