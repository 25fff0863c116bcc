"""Stores: each physical tile to its place, in whatever order it comes."""

from __future__ import annotations

from step_lang import ops

from ..context import Lowering
from ..orders import Preferences
from ._views import physical_view

KIND = "linear_offchip_store"


def preferences(op) -> Preferences:
    """A store serves any order."""
    return Preferences()


def lower(ctx: Lowering, op) -> None:
    placed = ctx.get(op.inputs[0])
    ctx.stored_type(op, op.inputs[0].type)
    view = physical_view(op, op.view_shape, op.view_stride, op.grid, placed.layout)
    ops.linear_offchip_store(placed.stream, ctx.tensors[op.tensor.name], shape=view.shape, stride=view.stride,
                             name=ctx.own(op))
