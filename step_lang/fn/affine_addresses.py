"""affine_addresses: a number as the addresses of a block."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from step_lang.dims import whole
from step_lang.errors import BadParameter, TypeMismatch
from step_lang.lengths import check_length
from step_lang.tokens import Data
from step_lang.types import Tile, Type, scalar, u32

from .piece import PieceFunction
from .support import as_addresses

__all__ = ["AffineAddresses"]


class AffineAddresses(PieceFunction):
    """A u32 x as the addresses ``base + x * scale + sum(i_k * stride_k)`` over ``shape``, a stream of rank
    ``len(shape) - 1``; ``shape`` and ``stride`` (default: row-major) outermost first."""

    name = "affine_addresses"

    def __init__(self, shape: Sequence[int], stride: Sequence[int] | None = None, scale: int = 1,
                 base: int = 0) -> None:
        sizes = _ints(shape)
        if not sizes or min(sizes) < 1:
            raise BadParameter(f"affine_addresses shape: {shape!r} vs positive ints, at least one")
        if stride is None:
            stride = [math.prod(sizes[k + 1:]) for k in range(len(sizes))]
        strides, more = _ints(stride), _ints((scale, base))
        if strides is None or len(strides) != len(sizes):
            raise BadParameter(f"affine_addresses stride: {stride!r} vs {len(sizes)} ints, one for each dimension")
        if more is None:
            raise BadParameter(f"affine_addresses scale, base: {scale!r}, {base!r} vs ints")
        super().__init__(shape=sizes, stride=strides, scale=more[0], base=more[1])

    def piece_type(self, type_: Type) -> Tile:
        if type_ != scalar(u32):
            raise TypeMismatch(f"affine_addresses of {type_} vs {scalar(u32)}",
                               fix="convert with map(cast(dtype='u32'), ..)")
        return scalar(u32)

    def piece_shape(self, type_: Type) -> tuple[int | None, *tuple[int, ...]]:
        return self.params["shape"]

    def pieces(self, numerics: Any, data: Data, type_: Type) -> tuple[np.ndarray, Data]:
        x = np.asarray(data, dtype=np.int64).reshape(-1)
        check_length(len(x) * math.prod(self.params["shape"]), f"{self.name} of {len(x)} elements")
        address = self.params["base"] + x * self.params["scale"]
        for n, k in zip(self.params["shape"], self.params["stride"]):
            address = (address[:, None] + np.arange(n, dtype=np.int64) * k).reshape(-1)
        return np.full(len(x), self.params["shape"][0]), as_addresses(self.name, address)


def _ints(values: Any) -> tuple[int, ...] | None:
    """A tuple or list of ints; None for anything else."""
    numbers = [whole(value) for value in values] if isinstance(values, (tuple, list)) else [None]
    return None if None in numbers else tuple(n for n in numbers if n is not None)
