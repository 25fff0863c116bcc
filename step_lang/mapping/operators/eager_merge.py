"""An eager merge unit; the selectors only where they are used."""

from __future__ import annotations

from ..builder import Builder

KIND = "eager_merge"


def build(builder: Builder, op) -> None:
    data, selector = op.outputs
    used = bool(selector.consumers)
    unit = builder.unit("eager_merge", op.name, op, {"selector": used}, {"rank": op.rank})
    builder.connect(unit, op.inputs, [data, selector] if used else [data])
