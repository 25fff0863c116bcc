"""reshape: one dimension becomes chunks of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dims import Shape, ceil_div, format_shape, is_static
from ..errors import BadParameter, ShapeMismatch, StreamProtocolError, TypeMismatch
from ..fn.support import as_constant
from ..lengths import check_length
from ..operator import Operator
from ..stream import Stream
from ..tokens import TokenStream, data_concat, data_take, pass_stops
from ..types import Tile, Type, bool_, scalar

__all__ = ["Reshape", "reshape"]


class Reshape(Operator):
    """See `reshape`. ``inner`` is the number of elements at each position of the dimension."""

    kind = "reshape"
    category = "shape"
    output_labels = ("data", "flags")
    optional_outputs = ("flags",)

    def __init__(self, stream: Stream, chunk: int, dim: int, pad: Any, flag_rank: int, name: str | None):
        self.chunk, self.dim, self.pad, self.flag_rank = chunk, dim, pad, flag_rank
        super().__init__([stream], name)

    def infer(self) -> list[tuple[Type, Shape]]:
        stream = self.inputs[0]
        self.chunk, self.dim = self.positive("chunk", self.chunk), self.positive("dim", self.dim, 0)
        if self.dim > stream.rank:
            raise BadParameter(f"dim: {self.dim} vs the stream's rank {stream.rank}", operator=self)
        at = stream.rank - self.dim
        size, inner = stream.shape[at], stream.shape[at + 1:]
        divides = is_static(size) and size % self.chunk == 0
        if self.dim and not divides and not (self.pad is not None and all(map(is_static, inner))):
            raise ShapeMismatch(f"dimension {self.dim} of {format_shape(stream.shape)}: {size} vs static and a "
                                f"multiple of chunk {self.chunk}", operator=self,
                                fix="choose a chunk that divides it, or give pad where all inner dimensions are static")
        if is_static(size) and not divides and self.pad is None:
            raise ShapeMismatch(f"dimension {self.dim}: {size} vs a multiple of chunk {self.chunk}", operator=self,
                                fix="give pad, the value of padding elements")
        self.flag_rank = self.positive("flag_rank", self.flag_rank, 0)
        if self.flag_rank > self.dim:
            raise BadParameter(f"flag_rank: {self.flag_rank} vs at most dim {self.dim}", operator=self)
        flagged = stream.shape[len(stream.shape) - self.flag_rank:]
        if not all(isinstance(size, int) and size for size in flagged):
            raise ShapeMismatch(f"dimensions that share a flag: {format_shape(flagged)} vs static ones",
                                operator=self, fix="lower flag_rank")
        if self.pad is not None:
            if not (isinstance(stream.type, Tile) and stream.type.is_static):
                raise TypeMismatch(f"padded type: {stream.type} vs a static tile", operator=self)
            value = as_constant("pad", self.pad, stream.type.dtype)
            if value.shape not in ((), (stream.type.rows, stream.type.cols)):
                raise BadParameter(f"pad: an array of shape {value.shape} vs a number or a tile of "
                                   f"{stream.type.rows} x {stream.type.cols}", operator=self)
        self.inner = int(np.prod(inner)) if all(map(is_static, inner)) else 1
        self.inner_shape = inner
        key = (self.kind, self.chunk, self.dim, stream.shape)
        chunks = ceil_div(size, self.chunk, lambda: self.program.fresh_ragged(key))
        shape = (*stream.shape[:at], chunks, self.chunk, *inner)
        return [(stream.type, shape), (scalar(bool_), shape[:len(shape) - self.flag_rank])]

    def interpret(self, ctx: Any, inputs: list[TokenStream]) -> list[TokenStream]:
        tokens = inputs[0]
        k = self.dim
        stop: list[int] = []
        empty: list[bool] = []
        index: list[int] = []  # -1 is a padding element
        block: list[int] = []
        position = 0  # full positions of the dimension in the current chunk

        def fill(last_stop: int) -> None:
            """Pad the current chunk to full; its last element gets ``last_stop``."""
            nonlocal position
            if self.pad is None:
                raise StreamProtocolError(f"dimension {k} ends after {position} of a chunk vs chunk {self.chunk}",
                                          fix="give pad, the value of padding elements")
            check_length(self.chunk, f"a chunk of {self.chunk} that is padded")
            if k:
                block[:] = pass_stops(self.inner_shape).tolist()
            for _ in range(self.chunk - position):
                stop.extend(block or [0])
                index.extend([-1] * (len(block) or 1))
                empty.extend([False] * (len(block) or 1))
            stop[-1] = last_stop
            position = 0

        element = 0
        for s, bare in zip(tokens.stop.tolist(), tokens.empty.tolist()):
            if bare:
                # Closes an empty vector; above dimension k it ends that dimension, which is then empty or, for
                # k > 0, holds empty positions (which padding cannot repeat).
                if k and s >= k:
                    if s > k and position == 0:
                        stop.append(s + 1)
                    else:
                        position = (position + 1) % self.chunk
                        if s > k and position:
                            raise StreamProtocolError(f"dimension {k} ends inside a chunk of empty positions vs chunk "
                                                      f"{self.chunk}")
                        stop.append(s + 1 if s > k or position == 0 else s)
                else:
                    stop.append(s if s < k else s + 1)
                empty.append(True)
                continue
            index.append(element)
            empty.append(False)
            element += 1
            if s < k:
                stop.append(s)
                continue
            position += 1
            full = position == self.chunk
            if full:
                position = 0
                stop.append(s + 1)
            elif s > k:
                stop.append(k)
                fill(s + 1)
            else:
                stop.append(s)
        if position:
            fill(k + 1)
        flags = np.array([i < 0 for i in index], dtype=bool).reshape(-1, 1, 1)
        data = tokens.data
        if flags.any():
            tile = self.inputs[0].type
            assert isinstance(tile, Tile)
            padding = np.broadcast_to(as_constant("pad", self.pad, tile.dtype), (1, tile.rows, tile.cols))
            data = data_concat([data, padding])
        data = data_take(data, np.array([element if i < 0 else i for i in index], dtype=np.int64))
        out = TokenStream(self.outputs[0].rank, stop, empty, data)
        return [out, self._flags(out.with_data(flags))]

    def _flags(self, flags: TokenStream) -> TokenStream:
        """One flag for each of the inner tensors that share one, of ``flags`` for all elements."""
        if not self.flag_rank:
            return flags
        low = np.flatnonzero(flags.empty & (flags.stop <= self.flag_rank))
        if len(low):
            raise StreamProtocolError(f"beat {int(low[0])}: a bare stop {int(flags.stop[low[0]])} vs the "
                                      f"{self.flag_rank} static dimensions that share a flag")
        one = flags.take(np.flatnonzero(flags.stop >= self.flag_rank), flags.rank - self.flag_rank)
        return TokenStream(one.rank, one.stop - self.flag_rank, one.empty, one.data)

    def ready(self, inputs: Sequence[TokenStream], done: Sequence[bool]) -> list[int]:
        position = whole = 0
        for i, (s, bare) in enumerate(zip(inputs[0].stop.tolist(), inputs[0].empty.tolist())):
            if s > self.dim:
                position = 0
            elif s == self.dim and not (bare and self.dim == 0):
                position = (position + 1) % self.chunk
            if position == 0 and s >= self.dim:
                whole = i + 1
        return [whole]

    def describe(self) -> str:
        return f"dim {self.dim} by {self.chunk}"


def reshape(stream: Stream, chunk: int, dim: int = 0, pad: Any = None, *, flag_rank: int = 0,
            name: str | None = None) -> tuple[Stream, Stream]:
    """Split dimension ``dim`` (innermost is 0) into ``[ceil(D / chunk), chunk]``; returns (data, padding flags).

    ``pad`` is the number every element of a padding tile holds. On dimension 0 a stop or done inside a chunk is padded
    to full. Above it the dimension must be static and divisible, or the inner dimensions static and ``pad`` given:
    then whole inner blocks are padded. The flags (bool, true for padding) may be left unused; they leave out
    the ``flag_rank`` inner dimensions (static, at most ``dim`` of them), which are padding as a whole or not at all.
    Raises `ShapeMismatch`.
    """
    out = Reshape(stream, chunk, dim, pad, flag_rank, name).outputs
    return out[0], out[1]
