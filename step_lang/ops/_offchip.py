"""Tile grids of off-chip tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import BadParameter, TypeMismatch
from ..operator import Operator
from ..program import Tensor
from ..types import Tile, Type

__all__ = ["grid_tiles", "tile_of"]


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
