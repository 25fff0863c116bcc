"""partition: each chunk to the outputs that its selector names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dims import Shape, format_shape, shapes_equal
from ..errors import BadParameter, MisalignedStreams, ShapeMismatch, StreamProtocolError
from ..operator import Operator
from ..stream import Stream
from ..tokens import TokenStream
from ..types import Type
from ._chunks import Chunks, check_selector, spread
from ._tokens import show_beat

__all__ = ["Partition", "partition"]


class Partition(Operator):
    """See `partition`. Inputs: data, selector."""

    kind = "partition"

    def __init__(self, stream: Stream, selector: Stream, rank: int, num_consumers: int | None, name: str | None):
        self.rank = rank
        self.num_consumers: Any = num_consumers
        super().__init__([stream, selector], name)

    def infer(self) -> list[tuple[Type, Shape]]:
        stream, selector = self.inputs
        self.rank = self.positive("rank", self.rank, 0)
        if self.rank > stream.rank:
            raise BadParameter(f"rank: {self.rank} vs the stream's rank {stream.rank}", operator=self)
        bits = check_selector(self, selector, 1, "consumers")
        self.num_consumers = self.positive("num_consumers", bits if self.num_consumers is None else self.num_consumers)
        check_selector(self, selector, self.num_consumers, "consumers")
        outer, inner = stream.shape[:stream.rank + 1 - self.rank], stream.shape[stream.rank + 1 - self.rank:]
        if not shapes_equal(selector.shape, outer):
            raise ShapeMismatch(f"shape of selector '{selector.name}': {format_shape(selector.shape)} vs "
                                f"{format_shape(outer)}, the outer dimensions of '{stream.name}'", operator=self,
                                fix="give one selector for each chunk, or assume the shape where it is known")
        # What one selector stream divides, it divides alike: the outputs of several partitions agree.
        return [(stream.type, (self.program.fresh_ragged((self.kind, selector.name, i)), *inner))
                for i in range(self.num_consumers)]

    def interpret(self, ctx: Any, inputs: list[TokenStream]) -> list[TokenStream]:
        stream, selector = inputs
        chunks = Chunks(stream, self.rank)
        self._check(stream, selector, chunks)
        carries = np.flatnonzero(~selector.empty)  # chunk numbers; the others are bare stops above the chunks
        outputs = []
        for i in range(self.num_consumers):
            chosen = carries[selector.data[:, i]]
            part = stream.take(spread(chunks.first[chosen], chunks.last[chosen]), self.rank)
            outputs.append(TokenStream(self.rank, np.minimum(part.stop, self.rank), part.empty, part.data))
        return outputs

    def _check(self, stream: TokenStream, selector: TokenStream, chunks: Chunks) -> None:
        """Raise `MisalignedStreams` where chunks and selectors are out of step, `BadParameter` for a bit too high."""
        if chunks.rest:
            raise StreamProtocolError(f"stream '{self.inputs[0].name}': ends {chunks.rest} beats into chunk "
                                      f"{len(chunks)} vs whole chunks of rank {self.rank}", operator=self)
        n = min(len(chunks), len(selector))
        stop = stream.stop[chunks.last[:n]] - self.rank
        # A bare stop on the selector has no chunk: there must be nothing but a bare stop in the stream either. With
        # rank 0 the reverse holds too; above it a bare stop alone is an empty chunk, which has a selector.
        alone = stream.empty[chunks.last[:n]] & (chunks.first[:n] == chunks.last[:n])
        wrong = (stop != selector.stop[:n]) | (selector.empty[:n] & ~alone)
        if self.rank == 0:
            wrong |= alone & ~selector.empty[:n]
        differ = np.flatnonzero(wrong)
        if len(differ) or len(chunks) != len(selector):
            k = int(differ[0]) if len(differ) else n
            beat = int(chunks.last[k]) if k < len(chunks) else len(stream)
            names = [s.name for s in self.inputs]
            raise MisalignedStreams(
                f"chunk {k} of rank {self.rank}: {show_beat(stream, beat)} on '{names[0]}' (beat {beat}) vs "
                f"{show_beat(selector, k)} on '{names[1]}'", operator=self,
                fix=f"one selector for each chunk, whose stop is the chunk's minus {self.rank}")
        beyond = np.argwhere(selector.data[:, self.num_consumers:])
        if len(beyond):
            k, bit = beyond[0].tolist()
            raise BadParameter(f"selector {k} on '{self.inputs[1].name}': bit {self.num_consumers + bit} vs "
                               f"{self.num_consumers} consumers", operator=self,
                               fix=f"select among 0..{self.num_consumers - 1}")

    def ready(self, inputs: Sequence[TokenStream], done: Sequence[bool]) -> list[int]:
        chunks = Chunks(inputs[0], self.rank)
        count = min(len(chunks), len(inputs[1]))
        return [chunks.beats(count), count]

    def describe(self) -> str:
        return f"rank {self.rank} to {self.num_consumers}"


def partition(stream: Stream, selector: Stream, rank: int, num_consumers: int | None = None, *,
              name: str | None = None) -> tuple[Stream, ...]:
    """Send each chunk, the ``rank`` = b inner dimensions (one element when 0), to every output whose selector bit is
    set; to none if none is set. Output i is ``[D^i, D_{b-1}..D_0]``, D^i ragged; stops above b become b.

    Parameters
    ----------
    selector : one for each chunk: its shape is the stream's outer dimensions, and its stops must agree.
    num_consumers : outputs; None: as many as the selector has bits. A bit beyond is an error at run time.

    Raises `ShapeMismatch`, `TypeMismatch`; at run time `MisalignedStreams`, `BadParameter`.
    """
    return tuple(Partition(stream, selector, rank, num_consumers, name).outputs)
