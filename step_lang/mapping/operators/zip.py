"""A zip unit."""

from __future__ import annotations

from ..builder import Builder

KIND = "zip"


def build(builder: Builder, op) -> None:
    unit = builder.unit("zip", op.name, op, {}, {})
    builder.connect(unit, op.inputs, op.outputs)
