"""A reshape unit; the padding flags only where they are used."""

from __future__ import annotations

from step_lang.dims import is_static
from step_lang.errors import HardwareTooSmall

from ..builder import Builder
from ._compute import bits_of

KIND = "reshape"


def build(builder: Builder, op) -> None:
    data, flags = op.outputs
    inner = [int(dim) if is_static(dim) else 1 for dim in op.inner_shape]
    if op.pad is not None and len(inner) > 2:
        raise HardwareTooSmall(f"padding of dimension {op.dim}: {len(inner)} dimensions below it, "
                               "those of its physical tiles included, vs at most 2",
                               operator=op, fix="reshape before adding inner dimensions")
    inner1, inner0 = [1, 1, *inner][-2:]
    pad = None
    if op.pad is not None:
        tile = data.type
        element = bits_of(op.pad, tile.dtype)
        pad = sum(element << (i * tile.dtype.bits) for i in range(int(tile.rows) * int(tile.cols)))
    used = bool(flags.consumers)
    unit = builder.unit("reshape", op.name, op, {"pad": pad, "pad_rows": None, "flags": used},
                        {"dim": op.dim, "flag_rank": op.flag_rank, "chunk": op.chunk, "inner1": inner1,
                         "inner0": inner0})
    builder.connect(unit, op.inputs, [data, flags] if used else [data])
