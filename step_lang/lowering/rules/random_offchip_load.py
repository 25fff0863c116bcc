"""random_offchip_load: the physical tiles of each logical one, in the order that the consumers want."""

from __future__ import annotations

from step_lang import ops

from ..context import Lowering
from ..orders import Preferences
from ._addresses import physical_addresses

KIND = "random_offchip_load"


def preferences(op) -> Preferences:
    """A load serves any order; addresses are not tiled."""
    return Preferences()


def lower(ctx: Lowering, op) -> None:
    layout = ctx.layout(op.output)
    addresses = physical_addresses(ctx, op, ctx.get(op.inputs[0]).stream, layout)
    stream = ops.random_offchip_load(addresses, ctx.tensors[op.tensor.name], ctx.stored_type(op, op.output.type),
                                     name=ctx.own(op))
    ctx.define(op.output, stream, layout)
