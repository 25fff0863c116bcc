"""Loads: the same tensor, tile by physical tile, in the order that the consumers want."""

from __future__ import annotations

from step_lang import ops

from ..context import Lowering
from ..orders import Preferences
from ._views import physical_view

KIND = "linear_offchip_load"


def preferences(op) -> Preferences:
    """A load serves any order; its reference has none in common with it."""
    return Preferences()


def lower(ctx: Lowering, op) -> None:
    layout = ctx.layout(op.output)
    view = physical_view(op, op.view_shape, op.view_stride, op.grid, layout)
    ref = None if op.ref is None else ctx.single(op.ref)
    split = max(view.splits, default=1) > 1
    stream = ops.linear_offchip_load(
        ctx.tensors[op.tensor.name], ctx.stored_type(op, op.output.type), ref=ref, shape=view.shape, stride=view.stride,
        name=ctx.name(f"{op.name}_view") if split else ctx.own(op))
    # Dimensions that were split are merged again, innermost first so that the levels of the others still hold.
    level = layout.inner
    pending = sum(n > 1 for n in view.splits)
    for parts in reversed(view.splits):
        if parts > 1:
            pending -= 1
            stream = ops.flatten(stream, level, level + 1, name=ctx.name(f"{op.name}_rows") if pending else ctx.own(op))
        level += 1
    ctx.define(op.output, stream, layout)
