"""set_offset: how many rows of a tile are valid."""

from __future__ import annotations

from typing import Any

import numpy as np

from step_lang.dims import ragged
from step_lang.errors import StreamProtocolError, TypeMismatch
from step_lang.tokens import data_pack
from step_lang.types import Tile, Type, scalar, u32

from .base import Function

__all__ = ["SetOffset"]


class SetOffset(Function):
    """Of a tile and a u32 n: the tile's first n rows, as a tile of dynamic size; with ``padding``, all but its last n.
    More rows than the tile has are an error at run time."""

    name = "set_offset"
    arity = 2

    def __init__(self, padding: bool = False) -> None:
        super().__init__(padding=bool(padding))

    def result_type(self, *types: Type) -> Tile:
        tile, count = self._tiles(types)
        if count != scalar(u32):
            raise TypeMismatch(f"set_offset count: {count} vs {scalar(u32)}",
                               fix="convert with map(cast(dtype='u32'), ..)")
        return Tile(ragged("rows_valid"), tile.cols, tile.dtype)

    def apply(self, numerics: Any, *arrays: np.ndarray) -> Any:
        tiles, counts = arrays
        rows = tiles.shape[1]
        kept = []
        for i, count in enumerate(np.asarray(counts, dtype=np.int64).reshape(-1).tolist()):
            if count > rows:
                raise StreamProtocolError(f"set_offset, tile {i}: {count} rows vs a tile of {rows}",
                                          fix=f"give counts of at most {rows}")
            kept.append(tiles[i, :rows - count if self.params["padding"] else count])
        return data_pack(kept)

    def flops(self, *types: Type) -> Any:
        return 0
