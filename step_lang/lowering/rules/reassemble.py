"""reassemble: a chunk has two more dimensions where the elements are tiled; selectors stay as they are."""

from __future__ import annotations

from step_lang import ops

from ..context import Lowering
from ..orders import Preferences

KIND = "reassemble"


def preferences(op) -> Preferences:
    """Tiles only pass."""
    return Preferences([[*op.streams, op.output]])


def lower(ctx: Lowering, op) -> None:
    placed = [ctx.input(op, i, ctx.order(op.output)) for i in range(len(op.streams))]
    layout = placed[0].layout
    # An empty group of elements stays a bare stop, two levels up; an empty group of chunks stays an error.
    stream = ops.reassemble([p.stream for p in placed], ctx.get(op.selector).stream, rank=op.rank + layout.inner,
                            hollow=op.hollow, name=ctx.own(op))
    ctx.define(op.output, stream, layout)
