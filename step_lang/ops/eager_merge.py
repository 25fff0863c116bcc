"""eager_merge: chunks of several streams in the order in which they arrive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy

from ..dims import Shape, is_ragged
from ..errors import BadParameter, StreamProtocolError
from ..operator import Operator
from ..stream import Stream
from ..tokens import TokenStream, concat_tokens
from ..types import Selector, Type
from ._chunks import Chunks, common_inner, common_type, spread

__all__ = ["EagerMerge", "eager_merge"]


class EagerMerge(Operator):
    """See `eager_merge`. ``rank`` is the inputs' rank, a."""

    kind = "eager_merge"
    arbitrates = True
    output_labels = ("data", "selector")
    optional_outputs = ("selector",)

    def __init__(self, streams: Any, name: str | None):
        super().__init__(streams if isinstance(streams, (list, tuple)) else [streams], name)

    def infer(self) -> list[tuple[Type, Shape]]:
        if not 1 <= len(self.inputs) <= 128:
            raise BadParameter(f"streams: {len(self.inputs)} vs 1..128", operator=self)
        inner = common_inner(self, self.inputs, (self.kind, self.name))
        self.rank = self.inputs[0].rank
        outer = [stream.shape[0] for stream in self.inputs]
        total = self.program.fresh_ragged((self.kind, self.name)) if any(map(is_ragged, outer)) else sympy.Add(*outer)
        total = int(total) if total.is_Integer else total
        return [(common_type(self, self.inputs), (total, *inner)), (Selector(len(self.inputs)), (total,))]

    def interpret(self, ctx: Any, inputs: list[TokenStream]) -> list[TokenStream]:
        for stream, tokens in zip(self.inputs, inputs):
            found = Chunks(tokens, self.rank)
            if found.rest:
                raise StreamProtocolError(f"stream '{stream.name}': ends {found.rest} beats into chunk {len(found)} vs "
                                          f"whole chunks of rank {self.rank}", operator=self)
        return self._merge(ctx, inputs, [True] * len(inputs))[1]

    def step(self, ctx: Any, inputs: Sequence[TokenStream],
             done: Sequence[bool]) -> tuple[list[int], list[TokenStream]]:
        return self._merge(ctx, inputs, done)

    def stuck(self, ctx: Any, inputs: Sequence[TokenStream], done: Sequence[bool]) -> None:
        waiting = [i for i, tokens in enumerate(inputs) if len(Chunks(tokens, self.rank))]
        if waiting:  # what the trace names does not come
            ctx.arbiter(self).next(waiting, "the inputs with a chunk,")

    def _merge(self, ctx: Any, inputs: Sequence[TokenStream],
               done: Sequence[bool]) -> tuple[list[int], list[TokenStream]]:
        """Serve inputs until no whole chunk is left, or until the trace names one that has none yet."""
        chunks = [Chunks(tokens, self.rank) for tokens in inputs]
        heads = [0] * len(inputs)
        order: list[int] = []
        arbiter = ctx.arbiter(self)
        while True:
            waiting = [i for i, found in enumerate(chunks) if heads[i] < len(found)]
            wanted = arbiter.wanted
            if not waiting or (wanted is not None and wanted < len(inputs) and wanted not in waiting
                               and not done[wanted]):
                break
            order.append(arbiter.next(waiting, "the inputs with a chunk,"))
            heads[order[-1]] += 1
        source = np.array(order, dtype=np.int64)
        # Which of its input's chunks each one is, then its beats among those of all inputs.
        number = np.zeros(len(order), dtype=np.int64)
        for i in range(len(inputs)):
            number[source == i] = np.arange(heads[i])
        base = np.cumsum([0, *map(len, inputs)])
        first = np.array([base[i] + chunks[i].first[k] for i, k in zip(order, number)], dtype=np.int64)
        last = np.array([base[i] + chunks[i].last[k] for i, k in zip(order, number)], dtype=np.int64)
        merged = concat_tokens(list(inputs)).take(spread(first, last))
        bits = np.zeros((len(order), len(inputs)), dtype=bool)
        bits[np.arange(len(order)), source] = True
        selector = TokenStream(0, np.zeros(len(order)), np.zeros(len(order)), bits)
        return [found.beats(head) for found, head in zip(chunks, heads)], [merged, selector]

    def describe(self) -> str:
        return f"{len(self.inputs)} streams"


def eager_merge(streams: Sequence[Stream], *, name: str | None = None) -> tuple[Stream, Stream]:
    """Merge ``streams`` of shapes ``[D^i, D_{a-1}..D_0]``, whole chunks (rank a; one element when a = 0) in the order
    in which they arrive: ``[sum of D^i, D_{a-1}..D_0]``; and the source of each, a rank-0 stream of one-hot selectors,
    which may be left unused. Done when all inputs are.

    Order of arrival: see `step_lang.arbitration`. Raises `ShapeMismatch`, `TypeMismatch`; at run time
    `ArbitrationError`.
    """
    out = EagerMerge(streams, name).outputs
    return out[0], out[1]
