"""A promote unit."""

from __future__ import annotations

from ..builder import Builder

KIND = "promote"


def build(builder: Builder, op) -> None:
    unit = builder.unit("promote", op.name, op, {}, {"rank": op.inputs[0].rank})
    builder.connect(unit, op.inputs, op.outputs)
