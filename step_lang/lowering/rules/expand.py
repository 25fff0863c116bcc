"""expand: an untiled element as it is; a grid of tiles is buffered and read once for each reference element."""

from __future__ import annotations

from step_lang import ops

from ..context import Lowering
from ..orders import Preferences

KIND = "expand"


def preferences(op) -> Preferences:
    """The reference gives only stops."""
    return Preferences([[op.inputs[0], op.output]])


def lower(ctx: Lowering, op) -> None:
    value, ref = op.inputs
    placed = ctx.get(value, ctx.order(op.output))
    physical_ref = ctx.single(ref)
    if not placed.layout.inner:
        stream = ops.expand(placed.stream, physical_ref, op.rank, name=ctx.own(op))
        ctx.define(op.output, stream, placed.layout)
        return
    stream = placed.stream
    inner = placed.layout.inner
    if op.rank:
        # [D_a..D_b, 1..1, grid] -> [D_a..D_b, grid]: the buffers' dimensions are the reference's outer ones.
        stream = ctx.merged(stream, inner, inner + op.rank, f"{op.name}_values")
    refs = ctx.buffer(stream, inner)
    stream = ops.streamify(refs, ref=physical_ref, name=ctx.own(op))
    ctx.define(op.output, stream, placed.layout)
