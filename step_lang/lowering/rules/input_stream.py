"""input_stream: the host gives physical tiles."""

from __future__ import annotations

from step_lang import ops

from ..context import Lowering

KIND = "input_stream"


def lower(ctx: Lowering, op) -> None:
    layout = ctx.layout(op.output)
    stream = ops.input_stream(ctx.own(op), ctx.physical_type(op.output.type), op.output.inferred_shape + layout.dims)
    ctx.define(op.output, stream, layout)
