"""expand: each element for all of a reference's inner dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dims import Shape, format_shape, shapes_equal
from ..errors import BadParameter, MisalignedStreams, ShapeMismatch
from ..operator import Operator
from ..stream import Stream
from ..tokens import TokenStream, data_take
from ..types import Type
from ._tokens import show_beat

__all__ = ["Expand", "expand"]


class Expand(Operator):
    """See `expand`."""

    kind = "expand"
    category = "shape"

    def __init__(self, stream: Stream, ref: Stream, rank: int, name: str | None):
        self.rank = rank
        super().__init__([stream, ref], name)

    def infer(self) -> list[tuple[Type, Shape]]:
        stream, ref = self.inputs
        self.rank = self.positive("rank", self.rank, 0)
        if self.rank > ref.rank:
            raise BadParameter(f"rank: {self.rank} vs the reference's rank {ref.rank}", operator=self)
        expected = ref.shape[:len(ref.shape) - self.rank] + (1,) * self.rank
        if not shapes_equal(stream.shape, expected):
            raise ShapeMismatch(f"shape of '{stream.name}': {format_shape(stream.shape)} vs {format_shape(expected)} "
                                f"for reference '{ref.name}' {format_shape(ref.shape)} and rank {self.rank}",
                                operator=self, fix="repeat(stream, 1) adds inner dimensions of 1")
        return [(stream.type, ref.shape)]

    def interpret(self, ctx: Any, inputs: list[TokenStream]) -> list[TokenStream]:
        values, ref = inputs
        stop, empty = values.stop.tolist(), values.empty.tolist()
        head = element = 0
        indices: list[int] = []
        for i, (s, bare) in enumerate(zip(ref.stop.tolist(), ref.empty.tolist())):
            ends = s >= self.rank
            if (ends or not bare) and (head >= len(stop) or (empty[head] and not bare) or (
                    self.rank == 0 and bare and not empty[head])):
                raise self._misaligned(values, head, ref, i)
            if not bare:
                indices.append(element)
            if ends:
                if stop[head] != s:
                    raise self._misaligned(values, head, ref, i)
                element += not empty[head]
                head += 1
        if head != len(stop):
            raise self._misaligned(values, head, ref, len(ref))
        return [TokenStream(ref.rank, ref.stop, ref.empty, data_take(values.data, indices))]

    def ready(self, inputs: Sequence[TokenStream], done: Sequence[bool]) -> list[int]:
        ends = np.flatnonzero(inputs[1].stop >= self.rank)[:len(inputs[0])]
        return [len(ends), int(ends[-1]) + 1 if len(ends) else 0]

    def _misaligned(self, values: TokenStream, head: int, ref: TokenStream, i: int) -> MisalignedStreams:
        names = [stream.name for stream in self.inputs]
        return MisalignedStreams(f"beat {head}: {show_beat(values, head)} on '{names[0]}' vs beat {i}: "
                                 f"{show_beat(ref, i)} on '{names[1]}'", operator=self,
                                 fix="one element for each rank-b tensor of the reference, with its stop")

    def onchip(self) -> Any:
        return self.output.type.nbytes

    def describe(self) -> str:
        return f"rank {self.rank}"


def expand(stream: Stream, ref: Stream, rank: int, *, name: str | None = None) -> Stream:
    """``[D_a..D_b, 1..1]`` against ref ``[D_a..D_0]`` -> ref's shape: the value advances when ref's stop >= b.

    Raises `ShapeMismatch`; `MisalignedStreams` at run time.
    """
    return Expand(stream, ref, rank, name).output
