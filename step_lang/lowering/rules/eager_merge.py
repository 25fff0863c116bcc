"""eager_merge: a chunk has two more dimensions where the elements are tiled; selectors stay as they are."""

from __future__ import annotations

from step_lang import ops

from ..context import Lowering
from ..orders import Preferences

KIND = "eager_merge"


def preferences(op) -> Preferences:
    """Tiles only pass."""
    return Preferences([[*op.inputs, op.outputs[0]]])


def lower(ctx: Lowering, op) -> None:
    data, selector = op.outputs
    placed = [ctx.input(op, i, ctx.order(data)) for i in range(len(op.inputs))]
    merged, names = ops.eager_merge([p.stream for p in placed], name=ctx.own(op))
    ctx.define(data, merged, placed[0].layout)
    ctx.define(selector, names, ctx.layout(selector))
