"""A partition unit, at a port of the scratchpads where it routes references."""

from __future__ import annotations

from ..builder import Builder
from ._references import routes

KIND = "partition"


def build(builder: Builder, op) -> None:
    unit = builder.unit("partition", op.name, op, routes(builder, op), {"rank": op.rank})
    builder.connect(unit, op.inputs, op.outputs)
