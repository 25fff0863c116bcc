"""Token streams: the values and stops that travel along a stream, in fused form (SPEC section 1).

The data of a token stream holds its elements, in order, bare stops left out:

* tiles of one shape: an array ``[n, rows, cols]``; of several shapes: a list of arrays ``[rows, cols]``
* selectors: a bool array ``[n, bits]``
* buffer references: a list of `Buffer`
* tuples: a tuple of the members' data
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import StreamProtocolError, TensorError
from .types import BufferRef, DType, Selector, Tile, Tuple, Type, int32, scalar

__all__ = [
    "Buffer",
    "Data",
    "TokenStream",
    "concat_tokens",
    "data_concat",
    "data_empty",
    "data_equal",
    "data_from_values",
    "data_length",
    "data_nbytes",
    "data_pack",
    "data_take",
    "data_type",
    "format_tokens",
    "parse_tokens",
    "pass_stops",
]

Data = Any
"""Elements, in one of the forms above."""

_INT = scalar(int32)


# Data


def data_length(data: Data) -> int:
    """Number of elements."""
    return data_length(data[0]) if isinstance(data, tuple) else len(data)


def data_take(data: Data, indices: Any) -> Data:
    """Elements at ``indices`` (an int array), in that order."""
    if isinstance(data, tuple):
        return tuple(data_take(member, indices) for member in data)
    if isinstance(data, list):
        return data_pack([data[int(i)] for i in indices])
    return data[np.asarray(indices, dtype=np.intp)]


def _data_slice(data: Data, first: int, last: int) -> Data:
    if isinstance(data, tuple):
        return tuple(_data_slice(member, first, last) for member in data)
    return data[first:last]


def data_pack(values: list) -> Data:
    """A list of elements as one array, where they are arrays of one shape."""
    if values and isinstance(values[0], np.ndarray) and all(v.shape == values[0].shape for v in values):
        return np.stack(values)
    return values


def data_concat(parts: Sequence[Data]) -> Data:
    """Elements of ``parts`` one after the other. At least one part."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], tuple):
        return tuple(data_concat([part[i] for part in parts]) for i in range(len(parts[0])))
    full = [part for part in parts if len(part)]
    if not full:
        return parts[0]
    if all(isinstance(p, np.ndarray) and p.shape[1:] == full[0].shape[1:] for p in full):
        return np.concatenate(full)
    return [element for part in full for element in part]


def _bits_equal(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def data_equal(a: Data, b: Data) -> bool:
    """Whether two data are equal bit for bit (a NaN equals itself)."""
    if isinstance(a, tuple) or isinstance(b, tuple):
        return isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b) and all(map(data_equal, a, b))
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return len(a) == len(b) and (len(a) == 0 or _bits_equal(a, b))
    return len(a) == len(b) and all(
        _bits_equal(x, y) if isinstance(x, np.ndarray) and isinstance(y, np.ndarray) else bool(x == y)
        for x, y in zip(a, b))


def data_nbytes(data: Data) -> int:
    """Bytes of all elements as they lie in memory."""
    if isinstance(data, tuple):
        return sum(map(data_nbytes, data))
    if isinstance(data, np.ndarray):
        if data.ndim == 2:  # selectors are packed bits
            return len(data) << (-(-data.shape[1] // 8) - 1).bit_length()  # a power of two, as `Selector.nbytes`
        return int(data.nbytes)
    return sum(4 if isinstance(element, Buffer) else int(element.nbytes) for element in data)


def data_empty(type_: Type) -> Data:
    """Data without elements."""
    if isinstance(type_, Tuple):
        return tuple(data_empty(member) for member in type_.members)
    if isinstance(type_, Selector):
        return np.zeros((0, type_.n), dtype=bool)
    if isinstance(type_, Tile) and type_.is_static:
        return np.zeros((0, type_.rows, type_.cols), dtype=type_.dtype.numpy)
    return []


def data_type(data: Data, type_: Type) -> Type:
    """``type_`` with the tile size of ``data``, an array ``[n, rows, cols]``."""
    if isinstance(type_, Tile) and isinstance(data, np.ndarray):
        return Tile(max(data.shape[1], 1), max(data.shape[2], 1), type_.dtype)
    return type_


def data_from_values(values: Iterable[Any], type_: Type) -> Data:
    """Data from element values: numbers or 2-D arrays for tiles, sets of bits (or bit vectors) for selectors, tuples
    for tuples, `Buffer` for references. Raises `TensorError` for a value the type cannot hold."""
    values = list(values)
    if isinstance(type_, Tuple):
        for value in values:
            if not isinstance(value, tuple) or len(value) != len(type_.members):
                raise TensorError(f"value {value!r} vs a tuple of {len(type_.members)}")
        return tuple(data_from_values([v[i] for v in values], member) for i, member in enumerate(type_.members))
    if not values:
        return data_empty(type_)
    if isinstance(type_, BufferRef):
        return values
    if isinstance(type_, Selector):
        bits = np.zeros((len(values), type_.n), dtype=bool)
        for row, value in zip(bits, values):
            row[:] = _selector_bits(value, type_)
        return bits
    return data_pack([_tile_value(value, type_) for value in values])


def _selector_bits(value: Any, type_: Selector) -> np.ndarray:
    """The bits ``[n]`` of a set of bit numbers, or of a vector of 0 and 1."""
    if isinstance(value, (set, frozenset)):
        if any(not isinstance(bit, (int, np.integer)) or not 0 <= bit < type_.n for bit in value):
            raise TensorError(f"selector {value} vs bits 0..{type_.n - 1}")
        return np.isin(np.arange(type_.n), list(value))
    if not isinstance(value, (list, tuple, np.ndarray)):
        raise TensorError(f"selector {value!r} vs a set of bits 0..{type_.n - 1}",
                          fix=f"give {{{value}}} for one bit" if isinstance(value, (int, np.integer)) else None)
    bits = np.asarray(value)
    if bits.shape != (type_.n,):
        raise TensorError(f"selector of shape {list(bits.shape)} vs {type_.n} bits")
    if bits.dtype.kind not in "iufb" or not np.isin(bits, (0, 1)).all():
        raise TensorError(f"selector {value} vs {type_.n} bits of 0 or 1",
                          fix="give a set of the bits that are 1")
    return bits.astype(bool)


def _range(dtype: DType) -> str:
    if dtype.name == "bool":
        return "0..1, the range of bool"
    limits = np.iinfo(dtype.numpy)
    return f"integers {limits.min}..{limits.max}, the range of {dtype}"


def _tile_value(value: Any, type_: Tile) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype != type_.dtype.numpy:
        if array.dtype.kind not in "iufb":
            raise TensorError(f"value {value!r} vs a number of {type_.dtype}", fix="give numbers")
        with np.errstate(invalid="ignore", over="ignore"):  # what does not survive the cast is told below
            cast = array.astype(type_.dtype.numpy)
        if not type_.dtype.is_float and not np.array_equal(cast.astype(array.dtype), array):
            wrong = array[cast.astype(array.dtype) != array].reshape(-1)[0]
            raise TensorError(f"value {wrong!s} vs {_range(type_.dtype)}", fix="give what the element type can hold")
        if isinstance(value, np.ndarray):
            raise TensorError(f"value of dtype {array.dtype} vs {type_.dtype}",
                              fix=f"convert it with .astype(step_lang.{type_.dtype}.numpy)")
        array = cast
    array = np.broadcast_to(array, (1, 1)) if array.ndim == 0 else array
    expected = (type_.rows, type_.cols)
    if array.ndim != 2 or any(isinstance(e, int) and e != n for e, n in zip(expected, array.shape)):
        raise TensorError(f"value of shape {list(array.shape)} vs {type_}")
    return array


@dataclass(eq=False)
class Buffer:
    """What a buffer reference refers to: elements and the stop after each, the last's being the buffer's rank n (its
    whole pass ends there)."""

    stop: np.ndarray
    data: Data

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, Buffer) and np.array_equal(self.stop, other.stop)
                and data_equal(self.data, other.data))

    def __len__(self) -> int:
        return len(self.stop)


# Streams


class TokenStream:
    """The tokens of a rank-``rank`` stream; done is implied at the end.

    ``stop`` (int8 ``[beats]``) is the level that closes with each beat, ``empty`` (bool ``[beats]``) marks bare
    stops, ``data`` holds the elements of the other beats. ``==`` compares bit for bit.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, rank: int, stop: Any, empty: Any, data: Data):
        self.rank = int(rank)
        self.stop = np.asarray(stop, dtype=np.int8).reshape(-1)
        self.empty = np.asarray(empty, dtype=bool).reshape(-1)
        self.data = data

    def __len__(self) -> int:
        """Number of beats, done not counted."""
        return len(self.stop)

    @property
    def elements(self) -> int:
        """Number of elements."""
        return len(self.stop) - int(self.empty.sum())

    def with_data(self, data: Data) -> TokenStream:
        """The same stops around other elements."""
        return TokenStream(self.rank, self.stop, self.empty, data)

    def take(self, beats: Any, rank: int | None = None) -> TokenStream:
        """The beats at ``beats`` (an int array), in that order, as tokens of a stream of ``rank`` (None: the same).
        What is taken need not follow the rules of a whole stream."""
        beats = np.asarray(beats, dtype=np.intp)
        empty = self.empty[beats]
        elements = (np.cumsum(~self.empty) - 1)[beats[~empty]]
        return TokenStream(self.rank if rank is None else rank, self.stop[beats], empty,
                           data_take(self.data, elements))

    def cut(self, first: int, last: int) -> TokenStream:
        """Beats ``first`` up to, not with, ``last``; not copied where the data is an array."""
        start = first - int(self.empty[:first].sum())
        end = start + (last - first) - int(self.empty[first:last].sum())
        return TokenStream(self.rank, self.stop[first:last], self.empty[first:last],
                           _data_slice(self.data, start, end))

    def same_stops(self, other: TokenStream) -> bool:
        return np.array_equal(self.stop, other.stop) and np.array_equal(self.empty, other.empty)

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, TokenStream) and self.rank == other.rank and self.same_stops(other)
                and data_equal(self.data, other.data))

    def __repr__(self) -> str:
        text = format_tokens(self)
        return text if len(text) <= 200 else f"{text[:190]}... ({len(self)} beats)"

    def check(self) -> TokenStream:
        """Raise `StreamProtocolError` unless the tokens follow the rules; return the stream."""
        def fail(i: int, what: str) -> None:
            raise StreamProtocolError(f"beat {i} (stop {int(self.stop[i])}): {what}")

        beats = len(self.stop)
        if len(self.empty) != beats or data_length(self.data) != self.elements:
            raise StreamProtocolError(f"{data_length(self.data)} elements vs {self.elements} beats that carry one")
        if not beats:
            return self
        high = np.flatnonzero((self.stop > self.rank) | (self.stop < 0))
        if len(high):
            fail(int(high[0]), f"stop level vs a stream of rank {self.rank}")
        bare = np.flatnonzero(self.empty & (self.stop == 0))
        if len(bare):
            fail(int(bare[0]), "neither element nor stop vs at least one")
        late = np.flatnonzero(self.empty[1:] & ~self.empty[:-1] & (self.stop[:-1] == 0)) + 1
        if len(late):
            fail(int(late[0]), "bare stop after an element without stop vs the stop fused with the element")
        if self.stop[-1] != self.rank:
            fail(beats - 1, f"last beat's stop vs the stream's rank {self.rank}")
        return self

    # Nested lists

    @classmethod
    def from_nested(cls, nested: Any, rank: int, type_: Type = _INT) -> TokenStream:
        """Tokens of ``nested``, lists nested ``rank + 1`` deep with element values inside (see `data_from_values`).

        An empty list at level k is a bare ``S_k`` (``S_{k+s}`` where more closes with it); at the outermost level it
        is the empty stream.
        """
        stop: list[int] = []
        empty: list[bool] = []
        values: list[Any] = []

        def walk(node: Any, level: int) -> None:
            if not isinstance(node, (list, tuple, np.ndarray)) or (isinstance(node, np.ndarray) and not node.ndim):
                raise TensorError(f"{node!r} vs a list nested {rank + 1} deep")
            for child in node:
                if level == 0:
                    values.append(child)
                    stop.append(0)
                    empty.append(False)
                elif not isinstance(child, (list, tuple, np.ndarray)) or len(child):
                    walk(child, level - 1)
                    stop[-1] = level
                else:
                    stop.append(level)
                    empty.append(True)

        walk(nested, rank)
        return cls(rank, stop, empty, data_from_values(values, type_))

    def to_nested(self, values: Sequence[Any] | None = None) -> list:
        """Lists nested ``rank + 1`` deep. Leaves are Python numbers for 1 x 1 tiles, else what the data holds."""
        values = list(_leaves(self.data)) if values is None else values
        levels: list[list] = [[] for _ in range(self.rank + 1)]
        taken = 0
        for stop, empty in zip(self.stop.tolist(), self.empty.tolist()):
            if not empty:
                levels[0].append(values[taken])
                taken += 1
            for level in range(1, stop + 1):
                levels[level].append(levels[level - 1])
                levels[level - 1] = []
        return levels[self.rank]


def concat_tokens(parts: Sequence[TokenStream]) -> TokenStream:
    """Beats of ``parts`` (at least one, of one rank) one after the other."""
    if len(parts) == 1:
        return parts[0]
    return TokenStream(parts[0].rank, np.concatenate([part.stop for part in parts]),
                       np.concatenate([part.empty for part in parts]), data_concat([part.data for part in parts]))


def _leaves(data: Data) -> list:
    if isinstance(data, tuple):
        return list(zip(*(_leaves(member) for member in data)))
    if isinstance(data, np.ndarray):
        if data.ndim == 2:
            return [set(np.flatnonzero(row).tolist()) for row in data]
        if data.shape[1:] == (1, 1):
            plain = data[:, 0, 0]
            return (plain if plain.dtype.kind in "biuf" else plain.astype(np.float64)).tolist()
    return list(data)


def pass_stops(shape: Sequence[int]) -> np.ndarray:
    """Stops (int8) of one whole pass over ``shape``, outermost first; the last element carries ``len(shape)``."""
    total = int(np.prod(shape, dtype=np.int64))
    stops = np.zeros(total, dtype=np.int8)
    period = 1
    for level, size in enumerate(reversed(shape), start=1):
        period *= size
        stops[period - 1::period] = level
    return stops


# Notation of SPEC section 1

_TOKEN = re.compile(r"\{[^}]*\}|\S+")


def parse_tokens(text: str, rank: int | None = None, type_: Type = _INT) -> TokenStream:
    """Parse ``"1 2 S1 S1 3 S2 D"``: numbers (``{0,2}`` for selectors), stops, done.

    ``rank`` is needed where the stream is empty; elsewhere it is the last stop's level. Raises `StreamProtocolError`.
    """
    tokens = _TOKEN.findall(text)
    if not tokens or tokens[-1] != "D" or "D" in tokens[:-1]:
        raise StreamProtocolError(f"tokens {text!r}: end vs one D at the end")
    stop: list[int] = []
    empty: list[bool] = []
    values: list[Any] = []
    pending = False  # an element whose stop has not been seen
    for token in tokens[:-1]:
        if re.fullmatch(r"S[1-9]\d*", token):
            if pending:
                stop[-1] = int(token[1:])
            else:
                stop.append(int(token[1:]))
                empty.append(True)
            pending = False
            continue
        if token.startswith("{"):
            values.append({int(bit) for bit in token[1:-1].split(",") if bit.strip()})
        else:
            try:
                values.append(int(token) if re.fullmatch(r"[-+]?\d+", token) else float(token))
            except ValueError:
                raise StreamProtocolError(f"token {token!r} vs a number, a selector, a stop or D") from None
        stop.append(0)
        empty.append(False)
        pending = True
    if rank is None:
        rank = stop[-1] if stop else 0
    return TokenStream(rank, stop, empty, data_from_values(values, type_)).check()


def format_tokens(tokens: TokenStream) -> str:
    """The stream in SPEC notation; tiles other than 1 x 1 as nested lists."""
    def show(value: Any) -> str:
        if isinstance(value, set):
            return "{" + ",".join(map(str, sorted(value))) + "}"
        if isinstance(value, tuple):
            return "(" + ", ".join(map(show, value)) + ")"
        if isinstance(value, Buffer):
            return "<" + format_tokens(TokenStream(99, value.stop, np.zeros(len(value)), value.data))[:-2] + ">"
        if isinstance(value, np.ndarray):
            return str(value.tolist()).replace(" ", "")
        return f"{value:g}" if isinstance(value, float) else str(int(value))

    words: list[str] = []
    values = iter(_leaves(tokens.data))
    for stop, empty in zip(tokens.stop.tolist(), tokens.empty.tolist()):
        if not empty:
            words.append(show(next(values)))
        if stop:
            words.append(f"S{stop}")
    return " ".join([*words, "D"])
