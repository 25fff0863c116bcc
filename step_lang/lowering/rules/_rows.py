"""row_sum and row_max over grids of tiles: a fold over the columns of the grid."""

from __future__ import annotations

from step_lang import ops
from step_lang.errors import UnknownFunction
from step_lang.stream import Stream

from ..context import Lowering, may_be_bare
from ..layout import RowTiled, Tiled
from ..orders import Preferences

__all__ = ["lower_accum", "lower_map", "preferences"]


def preferences(op) -> Preferences:
    """A map takes either order; an accum folds by columns. The results, a column, are cheapest as ``[.., R/T, 1]``."""
    return Preferences([], [(op.output, "row")] + ([(op.inputs[0], "col")] if op.kind == "accum" else []))


def lower_map(ctx: Lowering, op) -> None:
    """``[.., R/T, C/T]`` folds its inner dimension, ``[.., C/T, R/T]`` the one above with R/T states."""
    placed = ctx.get(op.inputs[0])
    if not placed.layout.inner:
        ctx.define(op.output, ops.map(op.fn, placed.stream, compute_bw=op.compute_bw, name=ctx.own(op)),
                   ctx.layout(op.output))
        return
    inner = 1 if placed.order == "col" else 0
    line = ops.accum(op.fn, placed.stream, rank=1, inner=inner, hollow=may_be_bare(op.inputs[0]),
                     compute_bw=op.compute_bw, name=ctx.name(f"{op.name}_fold"))
    _finish(ctx, op, line)


def lower_accum(ctx: Lowering, op) -> None:
    """By columns of the grid, so that each row is folded from left to right before the next element."""
    placed = ctx.get(op.inputs[0], "col")
    if isinstance(placed.layout, RowTiled):
        raise UnknownFunction(f"{op.fn.name} over elements of {op.inputs[0].type} in accum vs tiles of static rows",
                              operator=op, fix=f"map {op.fn.name} and accumulate its results")
    if not placed.layout.inner:
        ctx.define(op.output, ops.accum(op.fn, placed.stream, rank=op.rank, init=op.init, hollow=op.hollow,
                                        compute_bw=op.compute_bw, name=ctx.own(op)), ctx.layout(op.output))
        return
    line = ops.accum(op.fn, placed.stream, rank=op.rank + 1, inner=1, init=op.init, hollow=op.hollow,
                     compute_bw=op.compute_bw, name=ctx.name(f"{op.name}_fold"))
    _finish(ctx, op, line)


def _finish(ctx: Lowering, op, line: Stream) -> None:
    """``[.., R/T]`` as a vector's layout, or as single 1 x 1 results."""
    layout = ctx.layout(op.output)
    if isinstance(layout, (Tiled, RowTiled)):
        stream = ctx.as_vector(line, layout, ctx.own(op))
    else:
        stream = ops.flatten(line, 0, 1, name=ctx.own(op))
    ctx.define(op.output, stream, layout)
