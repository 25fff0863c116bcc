"""random_offchip_store: each physical tile to its place, in whatever order it comes; one acknowledgement for all."""

from __future__ import annotations

from step_lang import ops

from ..context import Lowering
from ..orders import Preferences
from ._addresses import physical_addresses

KIND = "random_offchip_store"


def preferences(op) -> Preferences:
    """A store serves any order; addresses and acknowledgements are not tiled."""
    return Preferences()


def lower(ctx: Lowering, op) -> None:
    addr, data = op.inputs
    placed = ctx.get(data)
    addresses = physical_addresses(ctx, op, ctx.get(addr).stream, placed.layout)
    ack = ops.random_offchip_store(addresses, placed.stream, ctx.tensors[op.tensor.name],
                                   rank=op.rank + placed.layout.inner, name=ctx.own(op))
    ctx.define(op.output, ack, ctx.layout(op.output))
