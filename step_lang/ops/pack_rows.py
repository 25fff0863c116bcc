"""pack_rows: rows, one by one, become tiles of several rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dims import Dim, Shape
from ..errors import StreamProtocolError, TypeMismatch
from ..operator import Operator
from ..stream import Stream
from ..tokens import TokenStream, data_empty, data_pack
from ..types import Tile, Type
from ._rows import row_tile, static_row, vectors

__all__ = ["PackRows", "pack_rows"]


class PackRows(Operator):
    """See `pack_rows`. ``columns`` is n, the tiles of a row."""

    kind = "pack_rows"
    category = "shape"

    def __init__(self, stream: Stream, rows: int, name: str | None):
        self.rows = rows
        super().__init__([stream], name)

    def infer(self) -> list[tuple[Type, Shape]]:
        stream = self.inputs[0]
        self.rows = self.positive("rows", self.rows)
        tile = row_tile(self, stream)
        if tile.rows != 1:
            raise TypeMismatch(f"elements of '{stream.name}': {tile} vs tiles of 1 row", operator=self,
                               fix="make rows of them with unpack_rows")
        self.columns = static_row(self, stream, 1)
        outer = stream.shape[:-1]
        rows: Dim
        size: Dim
        if isinstance(outer[-1], int) and outer[-1] and outer[-1] % self.rows == 0:
            rows, size = self.rows, outer[-1] // self.rows
        else:  # streams of one shape that are packed alike still agree
            rows = self.program.fresh_ragged((self.kind, "rows", self.rows, outer))
            size = self.program.fresh_ragged((self.kind, "blocks", self.rows, outer))
        return [(Tile(rows, tile.cols, tile.dtype), (*outer[:-1], size, self.columns))]

    def interpret(self, ctx: Any, inputs: list[TokenStream]) -> list[TokenStream]:
        tokens, n = inputs[0], self.columns
        tile = row_tile(self, self.inputs[0])
        zeros = np.zeros((1, int(tile.cols)), tile.dtype.numpy)
        stops: list[int] = []
        tiles: list[np.ndarray] = []
        block: list[int] = []  # first elements of its rows
        inside = False         # the group has had a row

        def close(stop: int) -> None:
            stops.extend([0] * (n - 1) + [stop])
            for j in range(n):
                tiles.append(np.concatenate([tokens.data[first + j] for first in block]) if block else zeros)
            block.clear()

        for row in vectors(tokens, n):
            if row.bare and (row.stop < 2 or inside):
                raise StreamProtocolError(f"row {row.number}: no tiles, stop {row.stop}, vs {n} tiles of a row, or a "
                                          "stop of at least 2 that is all of a group")
            if not row.bare:
                block.append(row.first)
            inside = row.stop < 2
            if row.stop >= 2 or len(block) == self.rows:
                close(row.stop)
        if block:
            close(1)
        data = data_pack(tiles) if tiles else data_empty(self.output.type)
        return [TokenStream(tokens.rank, stops, [False] * len(stops), data)]

    def ready(self, inputs: Sequence[TokenStream], done: Sequence[bool]) -> list[int]:
        """Whole groups, or whole blocks of one."""
        whole = rows = 0
        for i, stop in enumerate(inputs[0].stop.tolist()):
            rows += stop > 0
            if stop >= 2 or (stop and rows == self.rows):
                whole, rows = i + 1, 0
        return [whole]

    def describe(self) -> str:
        return f"{self.rows} rows"


def pack_rows(stream: Stream, rows: int, *, name: str | None = None) -> Stream:
    """Pack rows into tiles of up to ``rows`` rows: ``[.., M, n]`` of ``Tile(1, C)`` -> ``[.., M', n]`` of
    ``Tile(rho, C)``, M' = ceil(M / rows), n static. The operator that lowering makes of concat_rows.

    A block of n tiles is complete after ``rows`` rows, or where a group of rows ends: with a row whose stop is at least
    2, or done. The block's last tile carries 1, or the group's stop. An empty group (a bare stop of at least 2) is a
    block of one row of zeros, as ``accum(fn.concat_rows())`` leaves it. Where ``rows`` divides a static M the type is
    ``Tile(rows, C)`` and M' static, else both are ragged.

    Raises `TypeMismatch`, `ShapeMismatch`; at run time `StreamProtocolError` for a row of other than n tiles.
    """
    return PackRows(stream, rows, name).output
