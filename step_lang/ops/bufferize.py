"""bufferize: inner dimensions to on-chip memory, a reference for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dims import Shape, buffer_elements, format_shape, is_ragged
from ..errors import BadParameter, ShapeMismatch, StreamProtocolError
from ..operator import Operator
from ..stream import Stream
from ..tokens import Buffer, TokenStream, data_take
from ..types import BufferRef, Type

__all__ = ["Bufferize", "bufferize"]


class Bufferize(Operator):
    """See `bufferize`."""

    kind = "bufferize"
    category = "memory"

    def __init__(self, stream: Stream, rank: int, name: str | None, hollow: bool = False):
        self.rank, self.hollow = rank, hollow
        super().__init__([stream], name)

    def infer(self) -> list[tuple[Type, Shape]]:
        stream = self.inputs[0]
        self.rank = self.positive("rank", self.rank)
        if self.rank > stream.rank:
            raise BadParameter(f"rank: {self.rank} vs the stream's rank {stream.rank}", operator=self,
                               fix="promote the stream, or buffer fewer dimensions")
        inner = stream.shape[len(stream.shape) - self.rank:]
        if any(is_ragged(dim) for dim in inner[1:]):
            raise ShapeMismatch(f"buffered dimensions {format_shape(inner)}: a ragged inner one vs only the outermost",
                                operator=self, fix="flatten the ragged dimensions first, or assume them regular")
        return [(BufferRef(stream.type, inner), stream.shape[:len(stream.shape) - self.rank])]

    def interpret(self, ctx: Any, inputs: list[TokenStream]) -> list[TokenStream]:
        tokens = inputs[0]
        ends = np.flatnonzero(tokens.stop >= self.rank)
        index = np.cumsum(~tokens.empty)  # elements up to and with each beat
        buffers: list[Buffer] = []
        bare = np.zeros(len(ends), dtype=bool)
        start = taken = 0
        for i, end in enumerate(ends.tolist()):
            if self.hollow and start == end and tokens.empty[end]:
                if tokens.stop[end] == self.rank:
                    raise StreamProtocolError(f"beat {end}: an empty buffer vs ones that have elements")
                bare[i], start = True, end + 1
                continue
            stops = tokens.stop[start:end + 1][~tokens.empty[start:end + 1]].copy()
            if len(stops):
                if tokens.empty[start:end + 1].any():
                    raise StreamProtocolError(f"buffer {len(buffers)}: an empty inner vector vs a regular dimension")
                stops[-1] = self.rank
            total = int(index[end])
            buffers.append(Buffer(stops, data_take(tokens.data, np.arange(taken, total))))
            start, taken = end + 1, total
        return [TokenStream(tokens.rank - self.rank, tokens.stop[ends] - self.rank, bare, buffers)]

    def ready(self, inputs: Sequence[TokenStream], done: Sequence[bool]) -> list[int]:
        ends = np.flatnonzero(inputs[0].stop >= self.rank)
        return [int(ends[-1]) + 1 if len(ends) else 0]

    def onchip(self) -> Any:
        element, type_ = self.inputs[0].type.nbytes, self.output.type
        assert isinstance(type_, BufferRef)
        return element + 2 * buffer_elements(type_.shape) * element

    def describe(self) -> str:
        return f"rank {self.rank}" + (" hollow" if self.hollow else "")


def bufferize(stream: Stream, rank: int, *, hollow: bool = False, name: str | None = None) -> Stream:
    """Store the ``rank`` inner dimensions on-chip: ``[D_a..D_b, D_{b-1}..D_0] -> [D_a..D_b]`` of
    ``BufferRef(type, [D_{b-1}..D_0])``, 1 <= b <= a.

    A stop s >= b completes a buffer, whose reference leaves with s - b; a bare one completes an empty buffer if
    nothing came before it. With ``hollow`` it leaves as a bare stop s - b instead, for streams whose buffered
    dimensions are never empty themselves. Only the outermost buffered dimension may be ragged (`ShapeMismatch`).
    """
    return Bufferize(stream, rank, name, hollow).output
