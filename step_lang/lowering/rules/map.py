"""map: tile by tile where the function is elementwise; matmul and row functions become folds over the grid."""

from __future__ import annotations

from step_lang import ops
from step_lang.errors import UnknownFunction
from step_lang.stream import Stream
from step_lang.types import Tile

from ..context import Lowering
from ..layout import Order, RowTiled, Tiled
from ..orders import Preferences
from . import _matmul, _rows, _set_offset

KIND = "map"


def preferences(op) -> Preferences:
    """Elementwise: operands of the result's shape share its order; columns and rows that are broadcast vote for the
    order in which each of their tiles stays."""
    if op.fn.name == "matmul":
        return _matmul.preferences(op)
    if op.fn.name in ("row_sum", "row_max"):
        return _rows.preferences(op)
    if op.fn.name in ("concat_rows", "concat_cols"):
        return Preferences()
    if op.fn.name == "set_offset":
        return _set_offset.preferences(op)
    out = op.output
    same = [out]
    votes: list[tuple[Stream, Order]] = []
    for stream in op.inputs:
        if not isinstance(stream.type, Tile):   # selectors are not tiled
            continue
        sizes = stream.type.rows, stream.type.cols
        if sizes == (out.type.rows, out.type.cols):
            same.append(stream)
        elif sizes != (1, 1):
            votes.append((out, "row" if stream.type.cols == 1 else "col"))
    return Preferences([same], votes)


def lower(ctx: Lowering, op) -> None:
    if op.fn.name == "matmul":
        _matmul.lower_map(ctx, op)
    elif op.fn.name in ("row_sum", "row_max"):
        _rows.lower_map(ctx, op)
    elif op.fn.name == "set_offset":
        _set_offset.lower_map(ctx, op)
    elif op.fn.name in ("concat_rows", "concat_cols"):
        raise UnknownFunction(f"function {op.fn.name!r} in map vs one that lowering knows", operator=op,
                              fix="join the elements of one stream with accum")
    else:
        layout = ctx.layout(op.output)
        if layout.inner:
            assert isinstance(layout, (Tiled, RowTiled))
            inputs = [ctx.to_grid(op, i, layout) for i in range(len(op.inputs))]
        else:
            inputs = [ctx.get(stream).stream for stream in op.inputs]
        ctx.define(op.output, ops.map(op.fn, *inputs, compute_bw=op.compute_bw, name=ctx.own(op)), layout)
