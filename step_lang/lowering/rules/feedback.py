"""feedback: a physical stream that is there before anything reads it, connected when its producer has been lowered."""

from __future__ import annotations

from step_lang import ops
from step_lang.errors import TypeMismatch

from ..context import Lowering
from ..layout import Referenced

KIND = "feedback"


def begin(ctx: Lowering, op) -> None:
    stream = op.output
    layout = ctx.layout(stream)
    if isinstance(layout, Referenced):
        raise TypeMismatch(f"{stream.type} fed back vs tiles, selectors or tuples of these",
                           fix="feed back what is in the buffer, and buffer it inside of the loop")
    physical = ops.feedback(ctx.physical_type(stream.type), (*stream.inferred_shape, *layout.dims), name=ctx.own(op))
    ctx.define(stream, physical, layout)


def lower(ctx: Lowering, op) -> None:
    placed = ctx.placed[op.output.name][0]
    source = ctx.get(op.inputs[0], placed.order)
    placed.stream.connect(source.stream)  # type: ignore[attr-defined]
