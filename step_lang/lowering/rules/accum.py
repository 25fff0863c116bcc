"""accum: the state becomes a grid of tiles."""

from __future__ import annotations

import numpy as np

from step_lang import ops
from step_lang.errors import BadParameter

from ..context import Lowering
from ..layout import RowTiled, Tiled
from ..orders import Preferences
from . import _concat, _matmul, _rows

KIND = "accum"


def preferences(op) -> Preferences:
    if op.fn.name == "matmul":
        return _matmul.preferences(op)
    if op.fn.name in ("concat_rows", "concat_cols"):
        return _concat.preferences(op)
    if op.fn.name in ("row_sum", "row_max"):
        return _rows.preferences(op)
    return Preferences([[*op.inputs, op.output]])


def check_init(op) -> None:
    """Raise for an initial state that is not one number: it would differ from tile to tile."""
    if op.init is not None and np.ndim(op.init):
        raise BadParameter(f"init: an array of shape {np.shape(op.init)} vs a number", operator=op,
                           fix="give one number, and add the array with map afterwards")


def lower(ctx: Lowering, op) -> None:
    if op.inner:
        raise BadParameter(f"inner: {op.inner} vs 0 in a program that is to be lowered", operator=op)
    check_init(op)
    if op.fn.name == "matmul":
        _matmul.lower_accum(ctx, op)
    elif op.fn.name in ("concat_rows", "concat_cols"):
        _concat.lower_accum(ctx, op)
    elif op.fn.name in ("row_sum", "row_max"):
        _rows.lower_accum(ctx, op)
    else:
        layout = ctx.layout(op.output)
        order = layout.order if isinstance(layout, Tiled) else None
        inputs = [ctx.input(op, i, order).stream for i in range(len(op.inputs))]
        if isinstance(layout, RowTiled):
            inputs = [ctx.aligned(stream, layout) for stream in inputs]
        stream = ops.accum(op.fn, *inputs, rank=op.rank, init=op.init, inner=layout.inner, hollow=op.hollow,
                           compute_bw=op.compute_bw, name=ctx.own(op))
        ctx.define(op.output, stream, layout)
