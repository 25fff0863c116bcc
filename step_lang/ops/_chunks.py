"""Whole chunks of a stream (its inner dimensions), which the routing operators move as one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from ..dims import Dim, Shape, dims_equal, format_shape, is_ragged, shapes_equal
from ..errors import ShapeMismatch, TypeMismatch
from ..operator import Operator
from ..stream import Stream
from ..tokens import TokenStream
from ..types import BufferRef, Selector, Tile, Type, types_equal

__all__ = ["Chunks", "check_selector", "common_inner", "common_type", "spread"]


class Chunks:
    """The whole chunks of rank ``rank`` at the head of ``tokens``: chunk k is beats ``first[k]`` up to and with
    ``last[k]``. A chunk of rank 0 is one beat."""

    def __init__(self, tokens: TokenStream, rank: int):
        self.last = np.flatnonzero(tokens.stop >= rank) if rank else np.arange(len(tokens))
        self.first = np.concatenate([[0], self.last[:-1] + 1]) if len(self.last) else self.last
        self.rest = len(tokens) - self.beats(len(self))
        """Beats of a chunk that is not complete."""

    def __len__(self) -> int:
        return len(self.last)

    def beats(self, count: int) -> int:
        """Beats of the first ``count`` chunks together."""
        return int(self.last[count - 1]) + 1 if count else 0


def spread(first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """All of ``first[k]..last[k]`` for each k in turn."""
    counts = np.asarray(last, dtype=np.int64) - first + 1
    ends = np.cumsum(counts)
    return np.arange(int(counts.sum())) + np.repeat(np.asarray(first, dtype=np.int64) - (ends - counts), counts)


def check_selector(operator: Operator, selector: Stream, least: int, what: str) -> int:
    """Bits of the selectors that ``selector`` carries. Raises `TypeMismatch` unless there are at least ``least``, one
    for each of ``what``."""
    if not isinstance(selector.type, Selector) or selector.type.n < least:
        raise TypeMismatch(f"selector '{selector.name}': {selector.type} vs Selector({least}), a bit for each of the "
                           f"{least} {what}", operator=operator)
    return selector.type.n


def common_type(operator: Operator, streams: Sequence[Stream]) -> Type:
    """The one type of ``streams``; sizes of tiles and the outermost dimension of buffers become a ragged one of their
    own where they are not all the same and one is ragged. Raises `TypeMismatch`."""
    types = [stream.type for stream in streams]
    first = types[0]
    for stream in streams[1:]:
        if not _mix(stream.type, first):
            raise TypeMismatch(f"types of '{streams[0].name}' and '{stream.name}': {first} vs {stream.type}",
                               operator=operator, fix="merge streams of one type")
    if isinstance(first, BufferRef):
        buffers = [type_ for type_ in types if isinstance(type_, BufferRef)]
        outer = _common_size(operator, "buffer", [buffer.shape[0] for buffer in buffers])
        return BufferRef(_common_tile(operator, [buffer.tile for buffer in buffers]), (outer, *first.shape[1:]))
    return _common_tile(operator, types)


def _mix(a: Type, b: Type) -> bool:
    """Whether one stream can have elements of both types: a ragged dimension accepts any."""
    if isinstance(a, BufferRef) and isinstance(b, BufferRef):
        return types_equal(a.tile, b.tile) and len(a.shape) == len(b.shape) and shapes_equal(
            a.shape[1:], b.shape[1:]) and (is_ragged(a.shape[0]) or is_ragged(b.shape[0])
                                           or dims_equal(a.shape[0], b.shape[0]))
    return types_equal(a, b)


def _common_tile(operator: Operator, types: Sequence[Type]) -> Any:
    first = types[0]
    tiles = [type_ for type_ in types if isinstance(type_, Tile)]
    if not isinstance(first, Tile):
        return first
    return Tile(_common_size(operator, "rows", [tile.rows for tile in tiles]),
                _common_size(operator, "cols", [tile.cols for tile in tiles]), first.dtype)


def _common_size(operator: Operator, label: str, sizes: Sequence[Dim]) -> Dim:
    if all(size == sizes[0] for size in sizes):
        return sizes[0]
    return operator.program.fresh_ragged((operator.kind, operator.name, label))


def common_inner(operator: Operator, streams: Sequence[Stream], key: Hashable) -> Shape:
    """The dimensions below the outermost that ``streams`` have in common; a new ragged one where ragged ones differ.
    Raises `ShapeMismatch`."""
    first = streams[0]
    dims: list[Dim] = []
    for k in range(1, first.rank + 1):
        found = [stream.shape[k] for stream in streams if stream.rank == first.rank]
        if len(found) == len(streams) and all(dims_equal(dim, found[0]) for dim in found):
            dims.append(found[0])
        elif len(found) == len(streams) and any(map(is_ragged, found)):
            dims.append(operator.program.fresh_ragged((key, k)))
        else:
            break
    other = next((s for s in streams if s.rank != first.rank), None) or next(
        (s for s in streams if len(dims) < first.rank and not dims_equal(s.shape[len(dims) + 1],
                                                                         first.shape[len(dims) + 1])), None)
    if other is not None:
        raise ShapeMismatch(f"chunks of '{first.name}' and '{other.name}': {format_shape(first.shape[1:])} vs "
                            f"{format_shape(other.shape[1:])}", operator=operator,
                            fix="merge streams whose shapes differ in the outermost dimension only")
    return tuple(dims)
