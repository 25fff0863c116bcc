"""Tile grids of off-chip tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import BadParameter, TypeMismatch, ViewOutOfRange
from ..operator import Operator
from ..program import Tensor
from ..stream import Stream
from ..tokens import TokenStream
from ..types import Tile, Type, scalar, u32

__all__ = ["check_addresses", "grid_tiles", "require_addresses", "tile_of"]


def tile_of(operator: Operator, tensor: Tensor, tile: Any) -> Tile:
    """``tile`` (a Tile or (rows, cols)) as the Tile of ``tensor``'s grid. Raises `BadParameter`, `TypeMismatch`,
    `TileDoesNotDivide`."""
    if isinstance(tile, Tile):
        if tile.dtype != tensor.dtype:
            raise TypeMismatch(f"tile dtype: {tile.dtype} vs {tensor.dtype} of tensor '{tensor.name}'",
                               operator=operator)
    elif isinstance(tile, (tuple, list)) and len(tile) == 2:
        tile = Tile(operator.positive("tile rows", tile[0]), operator.positive("tile cols", tile[1]), tensor.dtype)
    else:
        raise BadParameter(f"tile: {tile!r} vs a Tile or (rows, cols)", operator=operator)
    tensor.grid(tile, operator)
    return tile


def grid_tiles(array: np.ndarray, tile: Type) -> np.ndarray:
    """Array ``[rows, cols]`` as a view ``[grid rows, grid cols, tile rows, tile cols]`` of its tiles."""
    assert isinstance(tile, Tile) and tile.is_static
    rows, cols = array.shape
    return array.reshape(rows // tile.rows, tile.rows, cols // tile.cols, tile.cols).swapaxes(1, 2)


def require_addresses(operator: Operator, stream: Stream) -> None:
    """Raise `TypeMismatch` unless ``stream`` carries addresses."""
    if stream.type != scalar(u32):
        raise TypeMismatch(f"addresses '{stream.name}': {stream.type} vs {scalar(u32)}", operator=operator,
                           fix="convert with map(cast(dtype='u32'), ..)")


def check_addresses(operator: Operator, tokens: TokenStream, tensor: Tensor, grid: tuple[int, int]) -> np.ndarray:
    """Addresses (int64 ``[n]``) of ``tokens``. Raises `ViewOutOfRange` for one that is not in ``tensor``."""
    addresses = np.asarray(tokens.data, dtype=np.int64).reshape(-1)
    wrong = np.flatnonzero(addresses >= grid[0] * grid[1])
    if len(wrong):
        i = int(wrong[0])
        raise ViewOutOfRange(f"address {int(addresses[i])} of element {i} vs tiles of tensor '{tensor.name}' "
                             f"0..{grid[0] * grid[1] - 1}", operator=operator, fix="keep addresses in the tensor")
    return addresses
