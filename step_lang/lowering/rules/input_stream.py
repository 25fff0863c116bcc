"""input_stream: the host gives physical tiles."""

from __future__ import annotations

from step_lang import ops
from step_lang.errors import TypeMismatch

from ..context import Lowering
from ..layout import RowTiled

KIND = "input_stream"


def lower(ctx: Lowering, op) -> None:
    layout = ctx.layout(op.output)
    if isinstance(layout, RowTiled):
        raise TypeMismatch(f"input stream of {op.output.type} vs tiles of static size, or selectors", operator=op,
                           fix="give rows, and join them with accum(concat_rows)")
    stream = ops.input_stream(ctx.own(op), ctx.stored_type(op, op.output.type), op.output.inferred_shape + layout.dims)
    ctx.define(op.output, stream, layout)
