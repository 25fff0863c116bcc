"""split_rows: a tile as a stream of tiles of fewer rows (the paper's RetileStreamify)."""

from __future__ import annotations

from typing import Any

import numpy as np

from step_lang.dims import ragged, whole
from step_lang.errors import BadParameter, TypeMismatch
from step_lang.tokens import Data, data_pack
from step_lang.types import Tile, Type

from .piece import PieceFunction

__all__ = ["SplitRows"]


class SplitRows(PieceFunction):
    """Tiles of ``rows`` rows each, in order. A tile of R rows, R being what it has at run time (see `set_offset`),
    becomes ceil(R / rows) of them, none where R = 0.

    Where ``rows`` does not divide R the last one is padded with rows of zeros; with ``drop_padding`` it has only the
    rows that there are.
    """

    name = "split_rows"

    def __init__(self, rows: int = 1, drop_padding: bool = False) -> None:
        number = whole(rows)
        if number is None or number < 1:
            raise BadParameter(f"split_rows rows: {rows!r} vs an int of at least 1")
        super().__init__(rows=number, drop_padding=bool(drop_padding))

    def _tile(self, type_: Type) -> Tile:
        if not isinstance(type_, Tile):
            raise TypeMismatch(f"function 'split_rows' takes tiles vs {type_}")
        return type_

    def piece_type(self, type_: Type) -> Tile:
        tile, rows = self._tile(type_), self.params["rows"]
        whole = rows == 1 or not self.params["drop_padding"] or (isinstance(tile.rows, int) and tile.rows % rows == 0)
        return Tile(rows if whole else ragged("rows_split"), tile.cols, tile.dtype)

    def piece_shape(self, type_: Type) -> tuple[int | None]:
        tile = self._tile(type_)
        return (-(-tile.rows // self.params["rows"]) if isinstance(tile.rows, int) else None,)

    def pieces(self, numerics: Any, data: Data, type_: Type) -> tuple[np.ndarray, Data]:
        rows = self.params["rows"]
        counts = np.array([-(-tile.shape[0] // rows) for tile in data], dtype=np.int64)
        made = []
        for tile in data:
            for first in range(0, tile.shape[0], rows):
                part = tile[first:first + rows]
                if len(part) < rows and not self.params["drop_padding"]:
                    part = np.concatenate([part, np.zeros((rows - len(part), part.shape[1]), dtype=part.dtype)])
                made.append(part)
        return counts, data_pack(made)
