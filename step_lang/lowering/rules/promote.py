"""promote: the outermost dimension is the same one."""

from __future__ import annotations

from step_lang import ops

from ..context import Lowering

KIND = "promote"


def lower(ctx: Lowering, op) -> None:
    placed = ctx.get(op.inputs[0], ctx.order(op.output))
    ctx.define(op.output, ops.promote(placed.stream, name=ctx.own(op)), placed.layout)
