"""An expand unit, at a port of the scratchpads where it copies references."""

from __future__ import annotations

from ..builder import Builder
from ._references import routes

KIND = "expand"


def build(builder: Builder, op) -> None:
    unit = builder.unit("expand", op.name, op, routes(builder, op), {"b": op.rank})
    builder.connect(unit, op.inputs, op.outputs)
