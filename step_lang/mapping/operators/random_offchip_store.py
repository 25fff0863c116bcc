"""A random store unit with a port of the memory system, acknowledging where that is used; the run is over when all
stores have seen done."""

from __future__ import annotations

from ..builder import Builder

KIND = "random_offchip_store"


def build(builder: Builder, op) -> None:
    place = builder.place(op.tensor, op.tile, op.grid, op)
    unit = builder.unit("random_store", op.name, op, {
        "element_bytes": place.element_bytes, "port": len(builder.write_ports), "memory": builder.hw.memory,
    }, {"base": place.base, "limit": op.grid[0] * op.grid[1], "inner": op.rank}, is_sink=True)
    builder.write_ports.append(place.element_bytes)
    builder.connect(unit, op.inputs, op.outputs if op.output.consumers else [])
