"""affine_addresses: a number as the addresses of a block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from step_lang.errors import BadParameter, TypeMismatch
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
        if not isinstance(shape, (tuple, list)) or not shape or any(not _is_int(n) or n < 1 for n in shape):
            raise BadParameter(f"affine_addresses shape: {shape!r} vs positive ints, at least one")
        if stride is None:
            stride = [int(np.prod(shape[k + 1:])) for k in range(len(shape))]
        if not isinstance(stride, (tuple, list)) or len(stride) != len(shape) or not all(map(_is_int, stride)):
            raise BadParameter(f"affine_addresses stride: {stride!r} vs {len(shape)} ints, one for each dimension")
        if not _is_int(scale) or not _is_int(base):
            raise BadParameter(f"affine_addresses scale, base: {scale!r}, {base!r} vs ints")
        super().__init__(shape=tuple(shape), stride=tuple(stride), scale=scale, base=base)

    def piece_type(self, type_: Type) -> Tile:
        if type_ != scalar(u32):
            raise TypeMismatch(f"affine_addresses of {type_} vs {scalar(u32)}",
                               fix="convert with map(cast(dtype='u32'), ..)")
        return scalar(u32)

    def piece_shape(self, type_: Type) -> tuple[int | None, *tuple[int, ...]]:
        return self.params["shape"]

    def pieces(self, numerics: Any, data: Data, type_: Type) -> tuple[np.ndarray, Data]:
        x = np.asarray(data, dtype=np.int64).reshape(-1)
        address = self.params["base"] + x * self.params["scale"]
        for n, k in zip(self.params["shape"], self.params["stride"]):
            address = (address[:, None] + np.arange(n, dtype=np.int64) * k).reshape(-1)
        return np.full(len(x), self.params["shape"][0]), as_addresses(self.name, address)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
