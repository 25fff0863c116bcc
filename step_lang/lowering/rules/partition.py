"""partition: a chunk has two more dimensions where the elements are tiled; selectors stay as they are."""

from __future__ import annotations

from step_lang import ops

from ..context import Lowering
from ..orders import Preferences

KIND = "partition"


def preferences(op) -> Preferences:
    """Tiles only pass."""
    return Preferences([[op.inputs[0], *op.outputs]])


def lower(ctx: Lowering, op) -> None:
    data, selector = op.inputs
    placed = ctx.get(data, ctx.order(data))
    outputs = ops.partition(placed.stream, ctx.get(selector).stream, rank=op.rank + placed.layout.inner,
                            num_consumers=op.num_consumers, name=ctx.own(op))
    for logical, physical in zip(op.outputs, outputs, strict=True):
        ctx.define(logical, physical, placed.layout)
