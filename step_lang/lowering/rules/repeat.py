"""repeat: an untiled element as it is; a grid of tiles is buffered and read n times."""

from __future__ import annotations

from step_lang import ops

from ..context import Lowering
from ..layout import Tiled

KIND = "repeat"


def lower(ctx: Lowering, op) -> None:
    placed = ctx.get(op.inputs[0], ctx.order(op.output))
    if not isinstance(placed.layout, Tiled):
        stream = ops.repeat(placed.stream, op.n, name=ctx.own(op))
    else:
        # The repetition is part of the view, so that a bare stop stays one bare stop.
        refs = ctx.buffer(placed.stream, 2)
        outer, inner = placed.layout.dims
        stream = ops.streamify(refs, ref=refs, shape=(op.n, outer, inner), stride=(0, inner, 1), name=ctx.own(op))
    ctx.define(op.output, stream, placed.layout)
