"""A load unit with a port of the memory system."""

from __future__ import annotations

from ..builder import Builder
from ._offchip import view_registers

KIND = "linear_offchip_load"


def build(builder: Builder, op) -> None:
    place = builder.place(op.tensor, op.tile, op.grid, op)
    window = builder.hw.load_window
    unit = builder.unit("load", op.name, op, {
        "element_bytes": place.element_bytes, "window": window, "port": len(builder.read_ports),
        "ref": op.ref is not None, "memory": builder.hw.memory,
    }, view_registers(op, place, op.view_shape, op.view_stride))
    builder.read_ports.append((place.element_bytes, window))
    builder.connect(unit, op.inputs, op.outputs)
