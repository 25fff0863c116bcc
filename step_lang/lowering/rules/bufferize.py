"""bufferize: two more inner dimensions where the elements are tiled."""

from __future__ import annotations

from step_lang import ops

from ..context import Lowering
from ..layout import Tiled

KIND = "bufferize"


def lower(ctx: Lowering, op) -> None:
    order = ctx.order(op.output)
    placed = ctx.get(op.inputs[0], order)
    stream = ops.bufferize(placed.stream, rank=op.rank + placed.layout.inner, hollow=op.hollow,
                           name=ctx.own(op))
    layout = ctx.layout(op.output, placed.layout.order if isinstance(placed.layout, Tiled) else order)
    ctx.define(op.output, stream, layout)
