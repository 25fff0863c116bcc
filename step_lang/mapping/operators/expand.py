"""An expand unit."""

from __future__ import annotations

from ..builder import Builder

KIND = "expand"


def build(builder: Builder, op) -> None:
    unit = builder.unit("expand", op.name, op, {}, {"b": op.rank})
    builder.connect(unit, op.inputs, op.outputs)
