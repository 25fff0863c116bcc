"""The roofline bound: no schedule on this hardware can be faster."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .hwconfig import HardwareConfig
from .metrics import metrics
from .program import Program

__all__ = ["Roofline", "allocated_flops", "peak_flops", "roofline"]


@dataclass(frozen=True)
class Roofline:
    """Lower bounds in cycles.

    memory : from the first burst to the last, at the peak bandwidth (`MemoryConfig.least_cycles`)
    compute : the busiest operator's FLOPs over what its unit can do
    busiest : that operator's name
    """

    memory: float
    compute: float
    busiest: str

    @property
    def cycles(self) -> float:
        """The larger of the two."""
        return max(self.memory, self.compute)

    @property
    def bound(self) -> str:
        """``"memory"`` or ``"compute"``."""
        return "memory" if self.memory >= self.compute else "compute"


def roofline(program: Program, hw: HardwareConfig, symbols: dict | None = None) -> Roofline:
    """Bound of a program with all sizes known (``symbols`` for those that are not static)."""
    costs = metrics(program).substitute(symbols or {})
    memory = float(hw.memory.least_cycles(math.ceil(costs.offchip_bytes)))
    compute, busiest = 0.0, "-"
    for operator, row in zip(program.operators, costs.rows):
        flops = float(row.flops)
        if not flops:
            continue
        function = getattr(operator, "fn", None)
        cycles = flops / peak_flops(getattr(function, "name", ""), hw, operator.compute_bw)
        if cycles > compute:
            compute, busiest = cycles, row.name
    return Roofline(memory, compute, busiest)


def peak_flops(function: str, hw: HardwareConfig, compute_bw: int | None) -> int:
    """FLOPs/cycle of the unit that serves one operator: a dot array of T x T x k, or rows of T lanes. ``compute_bw``
    pays for rows, at least one, of functions that `step_lang.mapping` has no other number for."""
    if function == "matmul":
        return 2 * hw.tile * hw.tile * int(hw.k_per_cycle or hw.tile)
    if compute_bw is not None and function != "row_sum":
        return max(compute_bw, hw.tile)
    rows = hw.tile if function in ("row_sum", "row_max") else int(hw.rows_per_cycle or 1)
    return hw.tile * rows


def allocated_flops(program: Program, hw: HardwareConfig) -> int:
    """FLOPs/cycle of all operators that compute, each with a unit of its own."""
    return sum(peak_flops(getattr(getattr(op, "fn", None), "name", ""), hw, op.compute_bw)
               for op in program.operators if op.uses_compute)
