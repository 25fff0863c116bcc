"""A store unit with a port of the memory system; the run is over when all have seen done."""

from __future__ import annotations

from ..builder import Builder
from ._offchip import view_registers

KIND = "linear_offchip_store"


def build(builder: Builder, op) -> None:
    place = builder.place(op.tensor, op.tile, op.grid, op)
    unit = builder.unit("store", op.name, op, {
        "element_bytes": place.element_bytes, "port": len(builder.write_ports), "memory": builder.hw.memory,
    }, view_registers(op, place, op.view_shape, op.view_stride), is_sink=True)
    builder.write_ports.append(place.element_bytes)
    builder.connect(unit, op.inputs, [])
