"""zip: pairs of physical tiles, both in one order."""

from __future__ import annotations

from step_lang import ops

from ..context import Lowering

KIND = "zip"


def lower(ctx: Lowering, op) -> None:
    layout = ctx.layout(op.output)
    order = ctx.order(op.output)
    x, y = (ctx.get(stream, order).stream for stream in op.inputs)
    ctx.define(op.output, ops.zip(x, y, name=ctx.own(op)), layout)
