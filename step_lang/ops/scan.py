"""scan: the state of a fold after every element."""

from __future__ import annotations

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
        count = len(groups.close) * self.positions
        if inputs[0].elements == 0:
            data = data_empty(self.output.type)
        elif self.fold_uniform(datas):
            states = self.initial_states(count, datas)
            data = np.zeros((inputs[0].elements, *states.shape[1:]), dtype=states.dtype)
            self.fold(ctx, datas, groups, states, data)
        else:
            _, data = self.fold_varying(ctx, datas, groups, count)
        return [inputs[0].with_data(data)]


def scan(fn: Function, *streams: Stream, rank: int, init: Any = None, inner: int = 0, compute_bw: int | None = None,
         name: str | None = None) -> Stream:
    """As `accum`, but the state leaves after every element: same shape and stops; it resets on s >= b + c."""
    return Scan(fn, streams, rank, init, inner, compute_bw, name).output
