"""scan: as accum, for functions whose state after an element is a state after each of its tiles."""

from __future__ import annotations

from step_lang import ops
from step_lang.errors import BadParameter, UnknownFunction

from ..context import Lowering
from ..layout import RowTiled, Tiled
from .accum import check_init

KIND = "scan"


def lower(ctx: Lowering, op) -> None:
    if op.inner:
        raise BadParameter(f"inner: {op.inner} vs 0 in a program that is to be lowered", operator=op)
    layout = ctx.layout(op.output)
    if isinstance(layout, RowTiled):
        raise UnknownFunction(f"scan over tiles of {op.output.type} vs static ones", operator=op,
                              fix="accumulate them, or pad them to a static number of rows")
    tiled = isinstance(layout, Tiled) or any(isinstance(ctx.layout(s), Tiled) for s in op.inputs)
    if tiled and op.fn.name in ("matmul", "row_sum", "row_max"):
        raise UnknownFunction(f"function {op.fn.name!r} in scan over tiles vs one that lowering knows", operator=op,
                              fix="map the function and scan the results with add or max")
    check_init(op)
    order = layout.order if isinstance(layout, Tiled) else None
    inputs = [ctx.input(op, i, order).stream for i in range(len(op.inputs))]
    stream = ops.scan(op.fn, *inputs, rank=op.rank, init=op.init, inner=layout.inner, compute_bw=op.compute_bw,
                      name=ctx.own(op))
    ctx.define(op.output, stream, layout)
