"""What the row operators share: streams of tiles in row order, whose innermost dimension is a row of ``n`` tiles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..dims import format_shape, is_static
from ..errors import ShapeMismatch, StreamProtocolError, TypeMismatch
from ..operator import Operator
from ..stream import Stream
from ..tokens import TokenStream
from ..types import Tile

__all__ = ["Vector", "height_of", "row_tile", "static_row", "vectors"]


@dataclass(frozen=True)
class Vector:
    """A level-1 vector: ``n`` elements from element ``first`` on, or none (``bare``); ``stop`` (>= 1) closes it."""

    number: int
    first: int
    stop: int
    bare: bool


def row_tile(operator: Operator, stream: Stream) -> Tile:
    """The tile that ``stream`` carries. Raises `TypeMismatch` unless its columns are static."""
    if not isinstance(stream.type, Tile) or not is_static(stream.type.cols):
        raise TypeMismatch(f"elements of '{stream.name}': {stream.type} vs a tile of static columns",
                           operator=operator)
    return stream.type


def static_row(operator: Operator, stream: Stream, least: int) -> int:
    """Tiles of a row: the innermost dimension. Raises `ShapeMismatch` unless static, or for a rank below ``least``."""
    if stream.rank < least:
        raise ShapeMismatch(f"rank of '{stream.name}': {stream.rank} vs at least {least}", operator=operator)
    n = stream.shape[-1]
    if not isinstance(n, int) or n < 1:
        raise ShapeMismatch(f"innermost dimension of '{stream.name}' {format_shape(stream.shape)}: {n} vs static, the "
                            "tiles of a row", operator=operator)
    return n


def vectors(tokens: TokenStream, n: int) -> Iterator[Vector]:
    """The level-1 vectors of ``tokens``. Raises `StreamProtocolError` for one of another size than ``n`` or 0."""
    ends = np.flatnonzero(tokens.stop > 0)
    elements = np.cumsum(~tokens.empty)
    first = 0
    for number, end in enumerate(ends.tolist()):
        size = int(elements[end]) - first
        bare = bool(tokens.empty[end])
        if size != (0 if bare else n):
            raise StreamProtocolError(f"row {number}: {size} tiles vs {n}, the stream's innermost dimension")
        yield Vector(number, first, int(tokens.stop[end]), bare)
        first += size
    if tokens.elements != first:
        raise StreamProtocolError(f"row {len(ends)}: the stream ends after {tokens.elements - first} tiles vs {n}")


def height_of(tokens: TokenStream, vector: Vector, n: int) -> int:
    """Rows of the tiles of ``vector``. Raises `StreamProtocolError` where they differ."""
    found = {tokens.data[vector.first + j].shape[0] for j in range(n)}
    if len(found) > 1:
        raise StreamProtocolError(f"row {vector.number}: tiles of {' and '.join(map(str, sorted(found)))} rows vs one "
                                  "count for all tiles of a row")
    return found.pop()
