"""trim_rows: the first rows of tiles that several tiles of fewer rows make up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..dims import Shape, format_shape, shapes_equal
from ..errors import BadParameter, MisalignedStreams, ShapeMismatch, StreamProtocolError, TypeMismatch
from ..operator import Operator
from ..stream import Stream
from ..tokens import TokenStream, data_empty, data_pack
from ..types import Tile, Type, scalar, u32
from ._chunks import Chunks
from ._rows import Vector, height_of, row_tile, static_row, vectors
from ._tokens import show_beat

__all__ = ["TrimRows", "trim_rows"]


class TrimRows(Operator):
    """See `trim_rows`. Inputs: tiles, counts. ``columns`` is n, the tiles of a row; ``total``, with ``padding``, the
    rows of a whole tile, else 0."""

    kind = "trim_rows"
    category = "shape"

    def __init__(self, stream: Stream, count: Stream, rows: int, padding: bool, name: str | None):
        self.rows, self.padding = rows, padding
        super().__init__([stream, count], name)

    def infer(self) -> list[tuple[Type, Shape]]:
        stream, count = self.inputs
        self.rows = self.positive("rows", self.rows)
        if not isinstance(self.padding, bool):
            raise BadParameter(f"padding: {self.padding!r} vs True or False", operator=self)
        tile = row_tile(self, stream)
        self.columns = static_row(self, stream, 2)
        outer, pieces = stream.shape[:-2], stream.shape[-2]
        if isinstance(tile.rows, int) and tile.rows != self.rows and not (pieces == 1 and tile.rows < self.rows):
            raise TypeMismatch(f"elements of '{stream.name}': {tile} vs tiles of {self.rows} rows, all but a last one",
                               operator=self, fix=f"give rows={tile.rows}")
        if count.type != scalar(u32):
            raise TypeMismatch(f"count '{count.name}': {count.type} vs {scalar(u32)}", operator=self,
                               fix="convert with map(cast(dtype='u32'), ..)")
        if not shapes_equal(count.shape, outer):
            raise ShapeMismatch(f"shape of count '{count.name}': {format_shape(count.shape)} vs {format_shape(outer)}, "
                                f"the outer dimensions of '{stream.name}'", operator=self,
                                fix="give one count for each tile, or assume the shape where it is known")
        self.total = 0
        if self.padding:
            if not (isinstance(tile.rows, int) and isinstance(pieces, int)):
                raise ShapeMismatch(f"rows of '{stream.name}': {pieces} tiles of {tile.rows} vs a static number of "
                                    "rows, of which to take off the padding", operator=self)
            self.total = tile.rows * pieces
        key = (self.kind, count.name, self.rows, self.padding, stream.shape[:-1])
        kept = self.program.fresh_ragged((*key, "blocks"))
        return [(Tile(self.program.fresh_ragged((*key, "rows")), tile.cols, tile.dtype),
                 (*outer, kept, self.columns))]

    def interpret(self, ctx: Any, inputs: list[TokenStream]) -> list[TokenStream]:
        tokens, counts = inputs
        numbers = iter(np.asarray(counts.data, dtype=np.int64).reshape(-1).tolist())
        stops: list[int] = []
        empty: list[bool] = []
        tiles: list[np.ndarray] = []
        chunks = 0
        for k, blocks in enumerate(_chunks(vectors(tokens, self.columns))):
            last = blocks[-1]
            nothing = last.bare and len(blocks) == 1 and last.stop > 2
            if any(block.bare for block in blocks) and not nothing:
                raise StreamProtocolError(f"tile {k}: a row without tiles vs {self.columns} tiles of a row")
            if k >= len(counts) or bool(counts.empty[k]) != nothing or counts.stop[k] + 2 != last.stop:
                raise self._misaligned(tokens, counts, k)
            chunks += 1
            if nothing:
                stops.append(last.stop)
                empty.append(True)
                continue
            left = self._valid(tokens, blocks, k, next(numbers))
            while True:
                block = blocks.pop(0)
                kept = min(left, height_of(tokens, block, self.columns))
                tiles.extend(tokens.data[block.first + j][:kept] for j in range(self.columns))
                left -= kept
                stops.extend([0] * (self.columns - 1) + [1 if left else last.stop])
                empty.extend([False] * self.columns)
                if not left:
                    break
        if chunks != len(counts):
            raise self._misaligned(tokens, counts, chunks)
        data = data_pack(tiles) if tiles else data_empty(self.output.type)
        return [TokenStream(tokens.rank, stops, empty, data)]

    def _valid(self, tokens: TokenStream, blocks: Sequence[Vector], k: int, count: int) -> int:
        """Rows that survive of tile ``k``."""
        rows = [height_of(tokens, block, self.columns) for block in blocks]
        if any(height != self.rows for height in rows[:-1]) or rows[-1] > self.rows:
            raise StreamProtocolError(f"tile {k}: made of tiles of {', '.join(map(str, rows))} rows vs {self.rows} in "
                                      "all but the last")
        total = self.total or sum(rows)
        if self.total and self.total != sum(rows):
            raise StreamProtocolError(f"tile {k}: {sum(rows)} rows vs {self.total}")
        if count > total:
            raise StreamProtocolError(f"tile {k}: {count} rows vs a tile of {total}")
        return total - count if self.padding else count

    def _misaligned(self, tokens: TokenStream, counts: TokenStream, k: int) -> MisalignedStreams:
        chunks = Chunks(tokens, 2)
        beat = int(chunks.last[k]) if k < len(chunks) else len(tokens)
        names = [stream.name for stream in self.inputs]
        return MisalignedStreams(f"tile {k}: {show_beat(tokens, beat)} on '{names[0]}' (beat {beat}) vs "
                                 f"{show_beat(counts, k)} on '{names[1]}'", operator=self,
                                 fix="one count for each tile, whose stop is the tile's minus 2")

    def ready(self, inputs: Sequence[TokenStream], done: Sequence[bool]) -> list[int]:
        chunks = Chunks(inputs[0], 2)
        count = min(len(chunks), len(inputs[1]))
        return [chunks.beats(count), count]

    def describe(self) -> str:
        return f"tiles of {self.rows} rows" + (", padding" if self.padding else "")


def _chunks(blocks: Iterator[Vector]) -> Iterator[list[Vector]]:
    """The blocks of each rank-2 chunk."""
    chunk: list[Vector] = []
    for block in blocks:
        chunk.append(block)
        if block.stop >= 2:
            yield chunk
            chunk = []
    if chunk:
        raise StreamProtocolError(f"the stream ends after {len(chunk)} rows of a tile vs whole tiles")


def trim_rows(stream: Stream, count: Stream, rows: int, padding: bool = False, *, name: str | None = None) -> Stream:
    """The first ``count`` rows of each tile that its rank-2 chunk makes up: ``[.., R', n]`` and count ``[..]`` (u32, of
    a rank two less) -> ``[.., R'', n]`` of ``Tile(rho, C)``, R'' = max(1, ceil(valid / rows)), n static. With
    ``padding`` all but the last ``count`` of a static number of rows. The operator that lowering makes of set_offset.

    ``rows`` are those of every tile of a chunk but the last row of tiles, which may have fewer. What is left of a tile
    without a valid row is one row of tiles of 0 rows. The last tile that is left carries the chunk's stop. A bare stop
    faces a bare stop of ``count`` two lower and passes.

    Raises `TypeMismatch`, `ShapeMismatch`; at run time `StreamProtocolError` for more rows than the tile has,
    `MisalignedStreams` where counts and tiles are out of step.
    """
    return TrimRows(stream, count, rows, padding, name).output
