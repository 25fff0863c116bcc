"""A map unit."""

from __future__ import annotations

from ..builder import Builder
from ._compute import bits_of, function_params

KIND = "map"


def build(builder: Builder, op) -> None:
    config = {}
    if op.fn.name == "scale":
        tile = op.inputs[0].type
        config["constant"] = bits_of(op.fn.constant_array(tile), tile.dtype)
    unit = builder.unit("map", op.name, op, function_params(builder, op), config)
    builder.connect(unit, op.inputs, op.outputs)
