"""accum: fold inner dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dims import Shape
from ..errors import BadParameter
from ..fn.base import Function
from ..stream import Stream
from ..tokens import TokenStream
from ..types import Type
from ._fold import FoldOperator
from ._tokens import require_same_stops

__all__ = ["Accum", "accum"]


class Accum(FoldOperator):
    """See `accum`."""

    kind = "accum"
    may_be_open = True

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
        if self.fold_uniform(datas, groups):
            data = self.fold(ctx, datas, groups.slot, groups.step, self.initial_states(groups.count, datas))
        else:
            data, _ = self.fold_varying(ctx, datas, groups)
        lengths = np.maximum(groups.sizes, 1)
        owner = np.repeat(np.arange(len(lengths)), lengths)
        position = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        row_ends = (position % self.row == self.row - 1) & (self.inner == 2)
        stop = np.where(position == lengths[owner] - 1, groups.close[owner] - self.rank, row_ends)
        return [TokenStream(self.output.rank, stop, groups.sizes[owner] == 0, data)]


def accum(fn: Function, *streams: Stream, rank: int, init: Any = None, inner: int = 0, hollow: bool = False,
          compute_bw: int | None = None, name: str | None = None) -> Stream:
    """Fold the ``rank`` = b dimensions above the ``inner`` = c innermost ones (SPEC's accum has c = 0):
    ``[D_a..D_{b+c}, (b folded), D_{c-1}..D_0] -> [D_a..D_{b+c}, D_{c-1}..D_0]``.

    The state is a tensor of the c inner dimensions, at most two. On a stop s >= b + c it leaves, its last element with
    s - b; a group without elements leaves ``init`` (None: the function's neutral element). With ``hollow`` it
    leaves as a bare stop s - b instead (an error where that is no stop).

    The outermost inner dimension may be ragged: all tensors of a group have the size of its first, which the state has
    then too, and a group without elements is an error unless ``hollow``. Tiles may be of varying size: those folded
    into one state are of one size, and the state has it.

    ``compute_bw`` in FLOPs/cycle (None: the hardware's default). Raises `ShapeMismatch`, `TypeMismatch`.
    """
    return Accum(fn, streams, rank, init, inner, compute_bw, name, hollow).output
