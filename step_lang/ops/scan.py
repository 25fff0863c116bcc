"""scan: the state of a fold after every element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dims import Shape
from ..errors import BadParameter
from ..fn.base import Function
from ..stream import Stream
from ..tokens import TokenStream, data_empty
from ..types import Type
from ._fold import FoldOperator
from ._tokens import require_same_stops

__all__ = ["Scan", "scan"]


class Scan(FoldOperator):
    """See `scan`."""

    kind = "scan"

    def infer(self) -> list[tuple[Type, Shape]]:
        state, _ = self.check_fold()
        if self.fn.grows:
            raise BadParameter(f"function {self.fn!r}: a state that grows vs one of constant size", operator=self)
        return [(state, self.inputs[0].shape)]

    def interpret(self, ctx: Any, inputs: list[TokenStream]) -> list[TokenStream]:
        require_same_stops(inputs, [stream.name for stream in self.inputs])
        datas = [tokens.data for tokens in inputs]
        ctx.flops += self.measured_flops(datas)
        groups = self.groups(inputs[0])
        if inputs[0].elements == 0:
            data = data_empty(self.output.type)
        elif self.fold_uniform(datas, groups):
            states = self.initial_states(groups.count, datas)
            data = np.zeros((inputs[0].elements, *states.shape[1:]), dtype=states.dtype)
            self.fold(ctx, datas, groups.slot, groups.step, states, data)
        else:
            _, data = self.fold_varying(ctx, datas, groups)
        return [inputs[0].with_data(data)]

    def step(self, ctx: Any, inputs: Sequence[TokenStream],
             done: Sequence[bool]) -> tuple[list[int], list[TokenStream]]:
        # The state leaves after every element, so an open group counts too: it is computed anew from its start, as if
        # it closed here, and what left before is not given again.
        if all(done):
            length = max(map(len, inputs))
            whole = [len(tokens) for tokens in inputs]
        else:
            whole = self.ready(inputs, done)
            length = min(map(len, inputs))
            length -= (length - whole[0]) % self.positions
        given = ctx.scratch.get(self.name, 0)
        if length <= given:
            return [0] * len(inputs), []
        closed = [tokens.cut(0, length) for tokens in inputs]
        if whole[0] < length:
            for i, tokens in enumerate(closed):
                stop = tokens.stop.copy()
                stop[-1] = max(int(stop[-1]), self.rank + self.inner)
                closed[i] = TokenStream(tokens.rank, stop, tokens.empty, tokens.data)
        flops = ctx.flops
        (states,) = self.interpret(ctx, closed)
        ctx.flops = flops + self.measured_flops([tokens.cut(given, length).data for tokens in closed])
        ctx.scratch[self.name] = length - whole[0]
        out = TokenStream(states.rank, inputs[0].stop[:length], states.empty, states.data)
        return whole, [out.cut(given, length)]


def scan(fn: Function, *streams: Stream, rank: int, init: Any = None, inner: int = 0, compute_bw: int | None = None,
         name: str | None = None) -> Stream:
    """As `accum`, but the state leaves after every element: same shape and stops; it resets on s >= b + c."""
    return Scan(fn, streams, rank, init, inner, compute_bw, name).output
