"""A random load unit with a port of the memory system."""

from __future__ import annotations

from ..builder import Builder

KIND = "random_offchip_load"


def build(builder: Builder, op) -> None:
    place = builder.place(op.tensor, op.tile, op.grid, op)
    window = builder.hw.load_window
    unit = builder.unit("random_load", op.name, op, {
        "element_bytes": place.element_bytes, "window": window, "port": len(builder.read_ports),
        "memory": builder.hw.memory,
    }, {"base": place.base, "limit": op.grid[0] * op.grid[1]})
    builder.read_ports.append((place.element_bytes, window))
    builder.connect(unit, op.inputs, op.outputs)
