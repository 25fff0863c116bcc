"""Token streams of the interpreter as beats of a link, and back (docs/DESIGN.md, section 2).

An element's bits: a tile row-major, element (0,0) lowest, missing rows as zeros; a selector bit 0 lowest; a tuple's
first member lowest.
"""

from collections.abc import Sequence

import numpy as np

from step_lang.tokens import TokenStream, data_from_values
from step_lang.types import BufferRef, Selector, Tile, Tuple, Type

from .beats import DONE, Beat, LinkLayout, bare

__all__ = ["from_beats", "layout_for", "to_beats"]

_REFERENCE_BITS = 32


def _static(type_: Tile) -> tuple[int, int]:
    if not type_.is_static:
        raise ValueError(
            f"{type_} has no fixed size; give the physical tile's type, for example Tile(T, T, {type_.dtype})"
        )
    return int(type_.rows), int(type_.cols)


def _bits(type_: Type) -> int:
    if isinstance(type_, Tuple):
        return sum(map(_bits, type_.members))
    if isinstance(type_, Selector):
        return type_.n
    if isinstance(type_, BufferRef):
        return _REFERENCE_BITS
    rows, cols = _static(type_)
    return rows * cols * type_.dtype.bits


def _max_rows(type_: Type) -> int:
    if isinstance(type_, Tuple):
        return max(map(_max_rows, type_.members))
    return _static(type_)[0] if isinstance(type_, Tile) else 1


def layout_for(type_: Type) -> LinkLayout:
    """Layout of the link that carries ``type_`` (a tile of static, physical size)."""
    return LinkLayout(_bits(type_), _max_rows(type_).bit_length())


def _encode(data, type_: Type) -> list[tuple[int, int]]:
    """(bits, rows) of each element."""
    if isinstance(type_, Tuple):
        columns = [_encode(member, kind) for member, kind in zip(data, type_.members, strict=True)]
        widths = [_bits(kind) for kind in type_.members]
        made = []
        for parts in zip(*columns, strict=True):
            word = at = 0
            for (bits, _), width in zip(parts, widths, strict=True):
                word |= bits << at
                at += width
            made.append((word, max(rows for _, rows in parts)))
        return made
    if isinstance(type_, Selector):
        return [(int.from_bytes(np.packbits(row, bitorder="little").tobytes(), "little"), 1) for row in data]
    if isinstance(type_, BufferRef):
        raise ValueError("a buffer reference's bits are the hardware's choice; compare what it refers to instead")
    rows, cols = _static(type_)
    made = []
    for tile in data:
        tile = np.ascontiguousarray(tile)
        if tile.shape[1] != cols or tile.shape[0] > rows or tile.dtype != type_.dtype.numpy:
            raise ValueError(f"tile of shape {list(tile.shape)}, dtype {tile.dtype} on a link of {type_}")
        raw = np.packbits(tile, bitorder="little") if type_.dtype.bits == 1 else tile
        made.append((int.from_bytes(raw.tobytes(), "little"), tile.shape[0]))
    return made


def to_beats(tokens: TokenStream, type_: Type, *, done: bool = True) -> list[Beat]:
    """Beats of ``tokens`` on a link of ``type_``; a tile of fewer rows than the type's travels zero-padded."""
    elements = iter(_encode(tokens.data, type_))
    made = []
    for stop, empty in zip(tokens.stop.tolist(), tokens.empty.tolist(), strict=True):
        if empty:
            made.append(bare(stop))
        else:
            bits, rows = next(elements)
            made.append(Beat(bits, rows, stop))
    return [*made, DONE] if done else made


def _decode(word: int, rows: int, type_: Type):
    if isinstance(type_, Tuple):
        parts = []
        for member in type_.members:
            width = _bits(member)
            parts.append(_decode(word & ((1 << width) - 1), min(rows, _max_rows(member)), member))
            word >>= width
        return tuple(parts)
    if isinstance(type_, Selector):
        return {bit for bit in range(type_.n) if word >> bit & 1}
    if isinstance(type_, BufferRef):
        return word
    full, cols = _static(type_)
    count = full * cols
    if type_.dtype.bits == 1:
        raw = np.frombuffer(word.to_bytes(-(-count // 8), "little"), np.uint8)
        flat = np.unpackbits(raw, count=count, bitorder="little").astype(bool)
    else:
        flat = np.frombuffer(word.to_bytes(count * type_.dtype.bytes, "little"), type_.dtype.numpy)
    return flat.reshape(full, cols)[:rows].copy()


def from_beats(stream: Sequence[Beat], type_: Type, rank: int) -> TokenStream:
    """The token stream that ``stream`` (one done at its end, or none) carried; of tiles, the valid rows only."""
    body = list(stream)
    if body and body[-1].done:
        body.pop()
    for at, beat in enumerate(body):
        if beat.done:
            raise ValueError(f"done at beat {at}, inside the stream; split at each done first")
    values = [_decode(beat.data, beat.rows, type_) for beat in body if not beat.empty]
    # A tile with fewer rows than the type's is legal on a link; the shape is each value's own.
    loose = type_ if not _ragged_rows(values, type_) else None
    data = data_from_values(values, type_) if loose is not None else values
    return TokenStream(rank, [beat.stop for beat in body], [bool(beat.empty) for beat in body], data)


def _ragged_rows(values: list, type_: Type) -> bool:
    return isinstance(type_, Tile) and any(value.shape[0] != int(type_.rows) for value in values)
