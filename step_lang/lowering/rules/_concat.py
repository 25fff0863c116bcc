"""concat_rows and concat_cols in accum: whole physical tiles only change dimension; rows and columns are packed."""

from __future__ import annotations

import math

from step_lang import ops
from step_lang.dims import is_static
from step_lang.errors import ShapeMismatch, TileDoesNotDivide

from ..context import Lowering
from ..layout import Order, Tiled
from ..orders import Preferences

__all__ = ["lower_accum", "order_of", "preferences"]


def order_of(op) -> Order:
    """The order in which joined tiles follow one another."""
    return "row" if op.fn.along == "rows" else "col"


def preferences(op) -> Preferences:
    stream = op.inputs[0]
    return Preferences([], [(stream, order_of(op)), (op.output, order_of(op))])


def lower_accum(ctx: Lowering, op) -> None:
    stream = op.inputs[0]
    folded = stream.shape[len(stream.shape) - op.rank:]
    if not all(is_static(dim) for dim in folded):
        raise ShapeMismatch(f"joined dimensions {list(folded)} vs static ones", operator=op,
                            fix="reshape the stream into chunks of a static size first")
    count = math.prod(folded)
    order = order_of(op)
    layout = ctx.layout(op.output, order)
    assert isinstance(layout, Tiled)
    placed = ctx.get(stream, order)
    if isinstance(placed.layout, Tiled) and getattr(stream.type, op.fn.along) != 1:
        ctx.define(op.output, ops.flatten(placed.stream, 1, 1 + op.rank, name=ctx.own(op)), layout)
        return
    if count % ctx.tile:
        raise TileDoesNotDivide(f"{count} {op.fn.along} joined: physical tile T = {ctx.tile} does not divide them",
                                operator=op, fix=f"join a multiple of {ctx.tile}")
    if not isinstance(placed.layout, Tiled):
        line = placed.stream if op.rank == 1 else ctx.merged(placed.stream, 0, op.rank - 1, f"{op.name}_all")
        chunks, _ = ops.reshape(line, chunk=ctx.tile, name=ctx.name(f"{op.name}_chunks"))
        packed = ops.accum(op.fn, chunks, rank=1, name=ctx.name(f"{op.name}_packed"))
        ctx.define(op.output, ctx.as_vector(packed, layout, ctx.own(op)), layout)
        return
    # T vectors that lie n tiles apart make a tile: read across the vectors.
    n = placed.layout.count
    line = ctx.line(placed.stream)
    if op.rank > 1:
        line = ctx.merged(line, 1, op.rank, f"{op.name}_all")
    across = ctx.replay(line, (count // ctx.tile, n, ctx.tile), (ctx.tile * n, 1, n), f"{op.name}_across")
    ctx.define(op.output, ops.accum(op.fn, across, rank=1, name=ctx.own(op)), layout)
