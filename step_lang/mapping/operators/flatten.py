"""A flatten unit."""

from __future__ import annotations

from ..builder import Builder

KIND = "flatten"


def build(builder: Builder, op) -> None:
    unit = builder.unit("flatten", op.name, op, {},
                        {"lo": op.lo, "hi": op.hi, "rank": op.inputs[0].rank})
    builder.connect(unit, op.inputs, op.outputs)
