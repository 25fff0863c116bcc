"""Parameters and registers that map, accum and scan share."""

from __future__ import annotations

from typing import Any

import numpy as np

from step_lang.errors import UnknownFunction
from step_lang.types import DType, Tile

from ..builder import Builder, hardware_type
from ..limits import check_states

__all__ = ["bits_of", "build_fold", "function_params"]

GROUPED = ("matmul", "row_sum")
"""Functions that serve ``k_per_cycle`` products a cycle, which the numerics fix; ``compute_bw`` cannot."""


def bits_of(value: Any, dtype: DType) -> int:
    """Bit pattern of one number of ``dtype``."""
    array = np.asarray(value).astype(dtype.numpy).reshape(1)
    return int.from_bytes(array.tobytes(), "little") & ((1 << dtype.bits) - 1)


def rows_per_cycle(builder: Builder, op) -> int:
    """Rows a cycle that ``compute_bw`` pays for, a divisor of the result's rows; the hardware's default without it."""
    result = hardware_type(op.output.type, builder.hw)
    assert isinstance(result, Tile)
    rows = int(result.rows)
    flops = int(op.fn.flops(*(hardware_type(stream.type, builder.hw) for stream in op.inputs)))
    if flops == 0:  # it only moves data
        return rows
    if op.compute_bw is None or op.fn.name in GROUPED:
        if op.compute_bw is not None:
            builder.warn(op, f"compute_bw {op.compute_bw} is not used: tile.k_per_cycle decides for {op.fn.name}")
        assert builder.hw.rows_per_cycle is not None  # filled in when the configuration was made
        return min(rows, builder.hw.rows_per_cycle)
    paid = op.compute_bw * rows // flops
    return max(n for n in range(1, rows + 1) if rows % n == 0 and n <= max(1, paid))


def function_params(builder: Builder, op) -> dict[str, Any]:
    """``params`` of a compute unit, of physical tiles that are full; ``masked`` where the result's may not be. Raises
    `UnknownFunction` for a function without hardware."""
    if not op.fn.has_hardware:
        raise UnknownFunction(f"function {op.fn.name!r} vs a function with hardware", operator=op,
                              fix="use it in the interpreter and the model only, or replace it")
    result, hw = op.output.type, builder.hw
    return {
        "function": op.fn, "in_types": tuple(hardware_type(stream.type, hw) for stream in op.inputs),
        "out_type": hardware_type(result, hw), "tile": hw.tile, "rows_per_cycle": rows_per_cycle(builder, op),
        "k_per_cycle": hw.k_per_cycle, "masked": isinstance(result, Tile) and result.rows not in (1, hw.tile),
    }


def build_fold(builder: Builder, op, kind: str) -> None:
    """An accum or scan unit."""
    hw = builder.hw
    n1, n0, entries = check_states(op, hw)   # how many entries an open dimension takes shows at run time
    types = [stream.type for stream in op.inputs]
    initial = np.asarray(op.fn.initial(op.init, *types)).reshape(-1)[0]
    params = {**function_params(builder, op), "entries": entries, "init": bits_of(initial, op.output.type.dtype)}
    config = {"rank": op.rank, "inner": op.inner, "n1": n1, "n0": n0}
    if kind == "accum":
        config["hollow"] = int(op.hollow)
    unit = builder.unit(kind, op.name, op, params, config)
    builder.connect(unit, op.inputs, op.outputs)
