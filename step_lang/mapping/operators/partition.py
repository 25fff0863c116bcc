"""A partition unit."""

from __future__ import annotations

from ..builder import Builder

KIND = "partition"


def build(builder: Builder, op) -> None:
    unit = builder.unit("partition", op.name, op, {}, {"rank": op.rank})
    builder.connect(unit, op.inputs, op.outputs)
