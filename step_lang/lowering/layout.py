"""How the elements of a logical stream lie in its physical stream, and the way back.

A stream of ``Tile(R, C)`` becomes a stream of T x T tiles with two more inner dimensions: in ``"col"`` order
``[.., C/T, R/T]``, in ``"row"`` order ``[.., R/T, C/T]``. A dimension of size 1 stays 1; 1 x 1 tiles, selectors and
references stay as they are. Tiles whose number of rows is known at run time only have a layout of their own, in row
order: all but their last row of physical tiles have T rows. Tiles of fewer than T rows are single physical tiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from step_lang.dims import Dim, Ragged, is_static
from step_lang.errors import StepError, TileDoesNotDivide, TypeMismatch
from step_lang.tokens import Buffer, Data, TokenStream, data_empty, data_length, data_pack
from step_lang.types import BufferRef, Selector, Tile, Tuple, Type

__all__ = [
    "Layout",
    "Order",
    "Referenced",
    "RowTiled",
    "Tiled",
    "Whole",
    "layout_of",
    "lower_tokens",
    "physical_type",
    "raise_tokens",
]

Order = Literal["col", "row"]


@dataclass(frozen=True)
class Whole:
    """Elements that are not tiled: 1 x 1 tiles, selectors, tuples of these."""

    type: Type

    inner = 0

    @property
    def dims(self) -> tuple[int, ...]:
        return ()

    def raise_data(self, data: Data) -> Data:
        return data

    def lower_data(self, data: Data) -> Data:
        return data


@dataclass(frozen=True)
class Tiled:
    """Tiles (or tuples of equally shaped tiles) in a grid of ``rows`` x ``cols`` physical tiles, in ``order``."""

    type: Type
    rows: int
    cols: int
    order: Order

    inner = 2

    @property
    def dims(self) -> tuple[int, int]:
        """The two inner dimensions of the physical stream."""
        return (self.cols, self.rows) if self.order == "col" else (self.rows, self.cols)

    @property
    def count(self) -> int:
        return self.rows * self.cols

    def in_order(self, order: Order) -> Tiled:
        return Tiled(self.type, self.rows, self.cols, order)

    def raise_data(self, data: Data) -> Data:
        """Logical elements from physical ones."""
        if isinstance(data, tuple):
            return tuple(self.raise_data(member) for member in data)
        if data_length(data) == 0:
            return data_empty(self.type) if isinstance(self.type, Tile) else data
        array = np.asarray(data)
        total, height, width = array.shape
        if total % self.count:
            raise StepError(f"{total} physical tiles vs a multiple of {self.rows} x {self.cols}")
        grid = array.reshape(total // self.count, *self.dims, height, width)
        if self.order == "col":
            grid = grid.transpose(0, 2, 1, 3, 4)
        return np.ascontiguousarray(grid.transpose(0, 1, 3, 2, 4)).reshape(-1, self.rows * height, self.cols * width)

    def lower_data(self, data: Data) -> Data:
        """Physical elements from logical ones."""
        if isinstance(data, tuple):
            return tuple(self.lower_data(member) for member in data)
        if data_length(data) == 0:
            return data
        array = np.asarray(data)
        n, height, width = array.shape
        grid = array.reshape(n, self.rows, height // self.rows, self.cols, width // self.cols).transpose(0, 1, 3, 2, 4)
        if self.order == "col":
            grid = grid.transpose(0, 2, 1, 3, 4)
        return np.ascontiguousarray(grid).reshape(-1, height // self.rows, width // self.cols)


@dataclass(frozen=True)
class RowTiled:
    """Tiles of ``type``, whose rows are dynamic, as ``[.., row_tiles, cols]``: ``row_tiles`` rows of physical tiles, a
    ragged dimension of at least 1, the last of which has what is left over (no rows at all for a tile of none)."""

    type: Tile
    row_tiles: Dim
    cols: int

    inner = 2
    order: Order = "row"

    @property
    def dims(self) -> tuple[Dim, int]:
        """The two inner dimensions of the physical stream."""
        return self.row_tiles, self.cols

    def raise_data(self, data: Data) -> Data:
        raise StepError(f"tiles of {self.type} vs their stops, which say where each ends")

    def lower_data(self, data: Data) -> Data:
        raise TypeMismatch(f"input of {self.type} vs tiles of static size, or selectors",
                           fix="give rows, and join them with accum(concat_rows)")


@dataclass(frozen=True)
class Referenced:
    """References to buffers whose elements lie as ``content`` says."""

    type: BufferRef
    content: Whole | Tiled

    inner = 0

    @property
    def dims(self) -> tuple[int, ...]:
        return ()

    def raise_data(self, data: Data) -> Data:
        return [self._raise_buffer(buffer) for buffer in data]

    def _raise_buffer(self, buffer: Buffer) -> Buffer:
        if self.content.inner == 0 or len(buffer) == 0:
            return Buffer(buffer.stop, self.content.raise_data(buffer.data))
        stop, _ = _raise_stops(buffer.stop, np.zeros(len(buffer), dtype=bool), self.content)
        return Buffer(stop, self.content.raise_data(buffer.data))

    def lower_data(self, data: Data) -> Data:
        raise TypeMismatch(f"input of {self.type} vs tiles or selectors")


Layout = Whole | Tiled | RowTiled | Referenced


def _raise_stops(stop: np.ndarray, empty: np.ndarray, layout: Any) -> tuple[np.ndarray, np.ndarray]:
    """Stops and empties of the logical beats, checked against the inner dimensions of the physical ones."""
    if layout.inner == 0:
        return stop, empty
    outer, inner = layout.dims
    position = np.cumsum(~empty) - 1  # index among elements
    within = position % layout.count
    last = ~empty & (within == layout.count - 1)
    expected = np.where(within % inner == inner - 1, 1, 0)
    wrong = np.where(empty | last, stop < 2, stop != expected)
    if wrong.any():
        beat = int(np.flatnonzero(wrong)[0])
        raise StepError(f"beat {beat} of the physical stream: stop {int(stop[beat])} vs a grid of {outer} x {inner}")
    keep = empty | last
    return (stop[keep] - 2).astype(np.int8), empty[keep]


def _raise_rows(tokens: TokenStream, layout: RowTiled) -> TokenStream:
    """The logical stream of a physical one of dynamic rows."""
    stop, empty = tokens.stop, tokens.empty
    position = np.cumsum(~empty) - 1
    wrong = np.where(empty, stop < 2, (position % layout.cols == layout.cols - 1) != (stop >= 1))
    if wrong.any() or tokens.elements % layout.cols:
        beat = int(np.flatnonzero(wrong)[0]) if wrong.any() else len(stop) - 1
        raise StepError(f"beat {beat} of the physical stream: stop {int(stop[beat])} vs rows of {layout.cols} tiles")
    ends = position[~empty & (stop >= 2)] + 1
    elements = []
    for first, last in zip(np.concatenate([[0], ends[:-1]]).tolist(), ends.tolist()):
        rows = [np.concatenate([tokens.data[i] for i in range(at, at + layout.cols)], axis=1)
                for at in range(first, last, layout.cols)]
        elements.append(np.concatenate(rows, axis=0))
    keep = stop >= 2
    data = data_pack(elements) if elements else data_empty(layout.type)
    return TokenStream(tokens.rank - 2, (stop[keep] - 2).astype(np.int8), empty[keep], data)


def raise_tokens(tokens: TokenStream, layout: Layout) -> TokenStream:
    """The logical token stream that a physical one stands for. Raises `StepError` where it stands for none."""
    if isinstance(layout, RowTiled):
        return _raise_rows(tokens, layout)
    stop, empty = _raise_stops(tokens.stop, tokens.empty, layout)
    return TokenStream(tokens.rank - layout.inner, stop, empty, layout.raise_data(tokens.data))


def lower_tokens(tokens: TokenStream, layout: Layout) -> TokenStream:
    """The physical token stream for a logical one."""
    if layout.inner == 0:
        return TokenStream(tokens.rank, tokens.stop, tokens.empty, layout.lower_data(tokens.data))
    assert isinstance(layout, Tiled)  # no other layout has inner dimensions
    _, inner = layout.dims
    one = np.zeros(layout.count, dtype=np.int8)
    one[inner - 1::inner] = 1
    stops: list[np.ndarray] = []
    empties: list[np.ndarray] = []
    for stop, empty in zip(tokens.stop, tokens.empty):
        beats = np.zeros(1, dtype=np.int8) if empty else one.copy()
        beats[-1] = stop + 2
        stops.append(beats)
        empties.append(np.full(len(beats), bool(empty)))
    flat = [np.concatenate(part) if part else np.zeros(0) for part in (stops, empties)]
    return TokenStream(tokens.rank + 2, flat[0], flat[1], layout.lower_data(tokens.data))


# Types


def layout_of(type_: Type, tile: int, order: Order) -> Layout:
    """Layout of elements of ``type_`` on ``tile`` x ``tile`` tiles. Raises `TileDoesNotDivide`, `TypeMismatch`."""
    if isinstance(type_, Selector):
        return Whole(type_)
    if isinstance(type_, BufferRef):
        content = layout_of(type_.tile, tile, order)
        if not isinstance(content, (Whole, Tiled)):
            raise TypeMismatch(f"{type_}: a buffer of references or of tiles of dynamic rows vs one of static tiles")
        return Referenced(type_, content)
    if isinstance(type_, Tuple):
        members = [layout_of(member, tile, order) for member in type_.members]
        if any(m.dims != members[0].dims or m.inner != members[0].inner or isinstance(m, Referenced) for m in members):
            raise TypeMismatch(f"tuple {type_} vs members that make equal grids of {tile} x {tile} tiles",
                               fix="zip tiles of one shape, or pass the streams to the function separately")
        first = members[0]
        return Tiled(type_, first.rows, first.cols, order) if isinstance(first, Tiled) else Whole(type_)
    if not is_static(type_.cols):
        raise TypeMismatch(f"{type_} of dynamic columns vs a static number",
                           fix="the hardware's dynamic tiles have dynamic rows: transpose the program")
    if (type_.rows, type_.cols) == (1, 1):
        return Whole(type_)
    sizes: list[int] = []
    for label, size in (("rows", type_.rows), ("cols", type_.cols)):
        if not isinstance(size, int):
            sizes.append(0)
            continue
        if label == "rows" and 1 < size < tile:    # one physical tile, not all of whose rows there are
            sizes.append(1)
            continue
        if size != 1 and size % tile:
            raise TileDoesNotDivide(
                f"{type_}: physical tile T = {tile} does not divide its {size} {label}",
                fix=f"use a tile with a multiple of {tile} {label}, or a smaller tile.size in the hardware "
                    "configuration")
        sizes.append(1 if size == 1 else size // tile)
    if not is_static(type_.rows):
        return RowTiled(type_, Ragged(f"tiles({type_.rows})"), sizes[1])
    return Tiled(type_, sizes[0], sizes[1], order)


def physical_type(type_: Type, tile: int) -> Type:
    """Type of the physical stream's elements for tiles, selectors and tuples."""
    if isinstance(type_, Tuple):
        return Tuple(tuple(physical_type(member, tile) for member in type_.members))
    if isinstance(type_, Tile):
        rows = min(tile, type_.rows) if isinstance(type_.rows, int) else Ragged(f"rows({type_.rows})")
        return Tile(1 if type_.rows == 1 else rows, 1 if type_.cols == 1 else tile, type_.dtype)
    return type_
