"""append_row: one more row of a tile."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy

from step_lang.dims import dims_equal, is_ragged, whole
from step_lang.errors import BadParameter, StreamProtocolError, TypeMismatch
from step_lang.types import Tile, Type

from .base import Function
from .support import joined

__all__ = ["AppendRow"]


class AppendRow(Function):
    """Of a tile and a row: the tile with the row behind its last valid one. ``capacity``, if given, is the most rows
    that the result may have; more are an error, at run time where the tile is dynamic."""

    name = "append_row"
    arity = 2

    def __init__(self, capacity: int | None = None) -> None:
        most = whole(capacity)
        if capacity is not None and (most is None or most < 1):
            raise BadParameter(f"append_row capacity: {capacity!r} vs an int of at least 1")
        super().__init__(capacity=most)

    def result_type(self, *types: Type) -> Tile:
        tile, row = self._tiles(types)
        if row.dtype != tile.dtype or row.rows != 1:
            raise TypeMismatch(f"append_row row: {row} vs a tile of 1 row of {tile.dtype}")
        if not (dims_equal(tile.cols, row.cols) or is_ragged(tile.cols) or is_ragged(row.cols)):
            raise TypeMismatch(f"append_row cols: {tile.cols} vs {row.cols}")
        if isinstance(tile.rows, int):
            self._check(tile.rows)
        return Tile(tile.rows if is_ragged(tile.rows) else sympy.Add(tile.rows, 1), tile.cols, tile.dtype)

    def _check(self, rows: int) -> None:
        capacity = self.params["capacity"]
        if capacity is not None and rows + 1 > capacity:
            raise StreamProtocolError(f"append_row: {rows + 1} rows vs capacity {capacity}",
                                      fix="start a new tile when one is full")

    def apply(self, numerics: Any, *arrays: np.ndarray) -> np.ndarray:
        tiles, rows = arrays
        self._check(tiles.shape[1])
        return joined("append_row", [tiles, rows], "rows")

    def flops(self, *types: Type) -> Any:
        return 0
