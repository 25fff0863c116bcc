"""A repeat unit."""

from __future__ import annotations

from ..builder import Builder

KIND = "repeat"


def build(builder: Builder, op) -> None:
    unit = builder.unit("repeat", op.name, op, {}, {"n": op.n})
    builder.connect(unit, op.inputs, op.outputs)
