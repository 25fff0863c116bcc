"""repeat: an untiled element as it is; a grid of tiles is buffered and read n times."""

from __future__ import annotations

from step_lang import ops
from step_lang.dims import format_shape
from step_lang.errors import ShapeMismatch

from ..context import Lowering, may_be_bare
from ..layout import RowTiled

KIND = "repeat"


def lower(ctx: Lowering, op) -> None:
    placed = ctx.get(op.inputs[0], ctx.order(op.output))
    if not placed.layout.inner:
        stream = ops.repeat(placed.stream, op.n, name=ctx.own(op))
    elif isinstance(placed.layout, RowTiled):
        if may_be_bare(op.inputs[0]):
            raise ShapeMismatch(f"stream '{op.inputs[0].name}' of shape {format_shape(op.inputs[0].shape)} in tiles of "
                                f"{op.inputs[0].type}: a dimension below the outermost that may be 0 vs static ones",
                                operator=op, fix="flatten the stream to one dimension first")
        stream = ctx.passes(placed.stream, 2, op.n, ctx.own(op))
    else:
        # The repetition is part of the view, so that a bare stop stays one bare stop.
        refs = ctx.buffer(placed.stream, 2)
        outer, inner = placed.layout.dims
        stream = ops.streamify(refs, ref=refs, shape=(op.n, outer, inner), stride=(0, inner, 1), name=ctx.own(op))
    ctx.define(op.output, stream, placed.layout)
