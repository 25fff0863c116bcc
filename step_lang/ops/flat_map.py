"""flat_map: a function that turns each element into a stream, concatenated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dims import Shape, product
from ..errors import UnknownFunction
from ..fn.base import Function
from ..fn.piece import PieceFunction
from ..stream import Stream
from ..tokens import TokenStream, concat_tokens, data_take, pass_stops
from ..types import Type
from ._call import CallOperator

__all__ = ["FlatMap", "flat_map"]


class FlatMap(CallOperator):
    """See `flat_map`. ``rank`` is b, the function's."""

    kind = "flat_map"
    fn: PieceFunction

    def __init__(self, fn: Function, stream: Stream, compute_bw: Any, name: str | None):
        super().__init__(fn, [stream], compute_bw, name)

    def infer(self) -> list[tuple[Type, Shape]]:
        (type_,) = self.check_call()
        stream = self.inputs[0]
        if not isinstance(self.fn, PieceFunction):
            raise UnknownFunction(f"function {self.fn!r} vs one that makes a stream of each element", operator=self,
                                  fix="use map, or a function such as fn.split_rows()")
        element = self.own_sizes(self.fn.piece_type(type_))
        outer, *self.inner = self.fn.piece_shape(type_)
        self.rank = len(self.inner)
        key = (self.kind, self.fn, stream.name)
        total = self.program.fresh_ragged(key) if outer is None else product(
            (stream.shape[-1], outer), lambda: self.program.fresh_ragged(key))
        return [(element, (*stream.shape[:-1], total, *self.inner))]

    def interpret(self, ctx: Any, inputs: list[TokenStream]) -> list[TokenStream]:
        tokens, b = inputs[0], self.rank
        pieces, data = self.fn.pieces(ctx.numerics, tokens.data, self.inputs[0].type)
        stops = pass_stops(self.inner)
        made = np.zeros(len(tokens), dtype=np.int64)  # output elements of each beat
        made[~tokens.empty] = np.asarray(pieces, dtype=np.int64) * len(stops)
        # A bare stop passes; an element without a piece leaves one if it closes anything.
        counts = np.where(made > 0, made, tokens.empty | (tokens.stop > 0))
        owner = np.repeat(np.arange(len(tokens)), counts)
        position = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        empty = made[owner] == 0
        s = tokens.stop.astype(np.int64)[owner]
        stop = np.where(position == counts[owner] - 1, s + b, stops[position % len(stops)])
        return [_fused(TokenStream(self.output.rank, stop, empty, data))]

    def step(self, ctx: Any, inputs: Sequence[TokenStream],
             done: Sequence[bool]) -> tuple[list[int], list[TokenStream]]:
        taken, outputs = super().step(ctx, inputs, done)
        if self.rank or self.output.rank == 0:
            return taken, outputs
        # An element that closes nothing waits: it has to take the stop of a bare one behind it.
        held = ctx.scratch.pop(self.name, None)
        out = _fused(concat_tokens([part for part in (held, *outputs) if part is not None])) if outputs else held
        if out is None or not len(out):
            return taken, []
        last = len(out) - int(not out.empty[-1] and out.stop[-1] == 0)
        if last < len(out):
            ctx.scratch[self.name] = out.cut(last, len(out))
        return taken, [out.cut(0, last)]

    def describe(self) -> str:
        return f"{self.fn} rank {self.rank}"


def _fused(tokens: TokenStream) -> TokenStream:
    """A bare stop behind an element without stop belongs to the element (SPEC section 1)."""
    stop, empty = tokens.stop.copy(), tokens.empty
    late = np.flatnonzero(empty[1:] & ~empty[:-1] & (stop[:-1] == 0)) + 1
    stop[late - 1] = stop[late]
    data = tokens.data if len(tokens) else data_take(tokens.data, [])
    return TokenStream(tokens.rank, np.delete(stop, late), np.delete(empty, late), data)


def flat_map(fn: Function, stream: Stream, *, compute_bw: int | None = None, name: str | None = None) -> Stream:
    """Turn each element into a rank-b stream by ``fn`` (a `PieceFunction`, which says b) and concatenate:
    ``[D_a..D_1, D_0] -> [D_a..D_1, D'_b..D'_0]``, D'_b summed over D_0.

    The last element made of one with stop s carries ``b + s``. An element of which nothing is made leaves a bare
    ``S_{b+s}`` if s > 0, nothing otherwise; where b = 0 and an element without stop precedes that, the stop is that
    element's. (Where b > 0 that bare stop is an empty level-1 vector, which behind others of the same vector does not
    fit the shape and is a `ShapeMismatch` at run time.) A bare stop s becomes ``S_{b+s}``. ``compute_bw`` in
    FLOPs/cycle (None: the hardware's default). Raises `UnknownFunction`, `TypeMismatch`.
    """
    return FlatMap(fn, stream, compute_bw, name).output
