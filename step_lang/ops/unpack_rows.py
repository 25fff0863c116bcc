"""unpack_rows: the valid rows of tiles, one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dims import Dim, Shape, is_static, product
from ..errors import StreamProtocolError
from ..operator import Operator
from ..stream import Stream
from ..tokens import TokenStream, data_empty
from ..types import Tile, Type
from ._rows import height_of, row_tile, static_row, vectors

__all__ = ["UnpackRows", "unpack_rows"]


class UnpackRows(Operator):
    """See `unpack_rows`. ``columns`` is n, the tiles of a row."""

    kind = "unpack_rows"
    category = "shape"

    def __init__(self, stream: Stream, name: str | None):
        super().__init__([stream], name)

    def infer(self) -> list[tuple[Type, Shape]]:
        stream = self.inputs[0]
        tile = row_tile(self, stream)
        self.columns = static_row(self, stream, 2)
        dims = (*stream.shape[-3:-1], tile.rows)
        key = (self.kind, tile.rows, stream.shape[:-1])  # streams of one shape still agree
        total: Dim
        if is_static(tile.rows):
            total = product(dims, lambda: self.program.fresh_ragged(key))
        else:
            total = self.program.fresh_ragged(key)
        return [(Tile(1, tile.cols, tile.dtype), (*stream.shape[:-3], total, self.columns))]

    def interpret(self, ctx: Any, inputs: list[TokenStream]) -> list[TokenStream]:
        tokens, n = inputs[0], self.columns
        stops: list[int] = []
        empty: list[bool] = []
        rows: list[np.ndarray] = []
        begun = filled = False  # the vector of tiles has had a block, a row
        for block in vectors(tokens, n):
            if block.bare:
                if begun or block.stop < 3:
                    raise StreamProtocolError(f"row {block.number}: no tiles, stop {block.stop}, vs {n} tiles, or a "
                                              "stop of at least 3 that is all of a vector")
                stops.append(block.stop - 1)
                empty.append(True)
                continue
            height = height_of(tokens, block, n)
            for i in range(height):
                rows.extend(tokens.data[block.first + j][i:i + 1] for j in range(n))
                stops.extend([0] * (n - 1) + [1])
                empty.extend([False] * n)
            filled = filled or height > 0
            begun = block.stop < 3
            if begun:
                continue
            if filled:  # the last row there was, if not of this block then of one before it
                stops[-1] = block.stop - 1
            else:
                stops.append(block.stop - 1)
                empty.append(True)
            filled = False
        data = np.stack(rows) if rows else data_empty(self.output.type)
        return [TokenStream(tokens.rank - 1, stops, empty, data)]

    def ready(self, inputs: Sequence[TokenStream], done: Sequence[bool]) -> list[int]:
        """Blocks behind which a vector begins, or one that has rows: the stop of the last row is then known."""
        tokens = inputs[0]
        whole = element = 0
        for i, (stop, bare) in enumerate(zip(tokens.stop.tolist(), tokens.empty.tolist())):
            begins = i and tokens.stop[i - 1] > 0
            if begins and not bare and tokens.data[element].shape[0]:
                whole = i
            if stop >= 3:
                whole = i + 1
            element += not bare
        return [whole]


def unpack_rows(stream: Stream, *, name: str | None = None) -> Stream:
    """The valid rows of tiles in row order: ``[.., D0, R', n]`` of ``Tile(rho, C)`` -> ``[.., sum M, n]`` of
    ``Tile(1, C)``, n static. The operator that lowering makes of split_rows.

    A block is n tiles that have equally many rows. Every row ends with 1; the last row of a vector of D0, which a block
    with stop s >= 3 closes, with s - 1, also where that block itself has no row. A vector without a row leaves a bare
    s - 1; a bare stop s leaves a bare s - 1.

    Raises `TypeMismatch`, `ShapeMismatch`; at run time `StreamProtocolError` for a block of other than n tiles or of
    tiles with different counts of rows.
    """
    return UnpackRows(stream, name).output
