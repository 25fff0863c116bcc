"""promote: a new outermost dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy

from ..dims import Shape, is_ragged, is_static
from ..operator import Operator
from ..stream import Stream
from ..tokens import TokenStream
from ..types import Type

__all__ = ["Promote", "promote"]


class Promote(Operator):
    """See `promote`."""

    kind = "promote"
    category = "shape"

    def __init__(self, stream: Stream, name: str | None):
        super().__init__([stream], name)

    def infer(self) -> list[tuple[Type, Shape]]:
        stream = self.inputs[0]
        outer = stream.shape[0]
        if is_static(outer):
            size = min(1, outer)
        else:
            size = self.program.fresh_ragged((self.kind, stream.shape)) if is_ragged(outer) else sympy.Min(1, outer)
        return [(stream.type, (size, *stream.shape))]

    def interpret(self, ctx: Any, inputs: list[TokenStream]) -> list[TokenStream]:
        tokens = inputs[0]
        stop = tokens.stop.copy()
        if len(stop):
            stop[-1] = tokens.rank + 1
        return [TokenStream(tokens.rank + 1, stop, tokens.empty, tokens.data)]

    def step(self, ctx: Any, inputs: Sequence[TokenStream],
             done: Sequence[bool]) -> tuple[list[int], list[TokenStream]]:
        if done[0]:
            return super().step(ctx, inputs, done)
        # The last beat waits: done may follow it.
        tokens = inputs[0]
        taken = len(tokens) - int(len(tokens) > 0 and tokens.stop[-1] == tokens.rank)
        part = tokens.cut(0, taken)
        return [taken], [TokenStream(tokens.rank + 1, part.stop, part.empty, part.data)] if taken else []


def promote(stream: Stream, *, name: str | None = None) -> Stream:
    """Add an outermost dimension, 1 if the stream has anything before done, else 0: the last beat before done carries
    N + 1."""
    return Promote(stream, name).output
