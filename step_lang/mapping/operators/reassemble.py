"""A reassemble unit."""

from __future__ import annotations

from ..builder import Builder

KIND = "reassemble"


def build(builder: Builder, op) -> None:
    unit = builder.unit("reassemble", op.name, op, {}, {"rank": op.rank, "hollow": int(op.hollow)})
    builder.connect(unit, op.inputs, op.outputs)
