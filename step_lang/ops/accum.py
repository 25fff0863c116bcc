"""accum: fold inner dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dims import Shape
from ..errors import BadParameter
from ..fn.base import Function
from ..stream import Stream
from ..tokens import TokenStream, pass_stops
from ..types import Type
from ._fold import FoldOperator
from ._tokens import require_same_stops

__all__ = ["Accum", "accum"]


class Accum(FoldOperator):
    """See `accum`."""

    kind = "accum"

    def infer(self) -> list[tuple[Type, Shape]]:
        state, _ = self.check_fold()
        if self.fn.grows and self.inner:
            raise BadParameter(f"inner: {self.inner} vs 0 for {self.fn!r}, whose state grows", operator=self)
        return [(state, self.folded_shape)]

    def interpret(self, ctx: Any, inputs: list[TokenStream]) -> list[TokenStream]:
        require_same_stops(inputs, [stream.name for stream in self.inputs])
        datas = [tokens.data for tokens in inputs]
        ctx.flops += self.measured_flops(datas)
        groups = self.groups(inputs[0])
        count = len(groups.close) * self.positions
        if self.fold_uniform(datas):
            data = self.fold(ctx, datas, groups, self.initial_states(count, datas))
        else:
            data, _ = self.fold_varying(ctx, datas, groups, count)
        stop = np.tile(pass_stops(self.inner_shape).astype(np.int64), len(groups.close))
        stop[self.positions - 1::self.positions] = groups.close - self.rank
        return [TokenStream(self.output.rank, stop, np.zeros(count, dtype=bool), data)]


def accum(fn: Function, *streams: Stream, rank: int, init: Any = None, inner: int = 0, compute_bw: int | None = None,
          name: str | None = None) -> Stream:
    """Fold the ``rank`` = b dimensions above the ``inner`` = c innermost ones (SPEC's accum has c = 0):
    ``[D_a..D_{b+c}, (b folded), D_{c-1}..D_0] -> [D_a..D_{b+c}, D_{c-1}..D_0]``.

    The state is a tensor of the c inner dimensions, which are static, at most two. On a stop s >= b + c it leaves, its
    last element with s - b; a group without elements leaves ``init`` (None: the function's neutral element).
    ``compute_bw`` in FLOPs/cycle (None: the hardware's default). Raises `ShapeMismatch`, `TypeMismatch`.
    """
    return Accum(fn, streams, rank, init, inner, compute_bw, name).output
