"""Latency and interval of every hardware unit, stated once.

RTL is built to these numbers, each unit's bench measures them, and the performance model reads them.
Latency L: an output beat is offered L cycles after the beat that causes it was accepted (the link behind adds one).
Interval: cycles between accepted beats in steady state.
"""

from dataclasses import dataclass

__all__ = ["Timing", "function_timing", "unit_timing"]


@dataclass(frozen=True)
class Timing:
    """latency and interval in cycles."""

    latency: int
    interval: int


DOT_STAGES = 3
"""Pipeline registers of a dot product cell: operands, aligned products, sum (see step_hw/cells)."""


def function_timing(name: str, *, tile: int, rows_per_cycle: int, k_per_cycle: int) -> Timing:
    """Timing of a function's datapath in a ``map`` unit.

    ``matmul`` and ``row_sum`` take one group of ``k_per_cycle`` products a cycle; an elementwise function serves
    ``rows_per_cycle`` rows a cycle.
    """
    if name in ("matmul", "row_sum"):
        interval = -(-tile // k_per_cycle)
        return Timing(interval - 1 + DOT_STAGES, interval)
    interval = -(-tile // rows_per_cycle)
    return Timing(interval, interval)


def unit_timing(kind: str) -> Timing:
    """Timing of the units without a function."""
    return Timing(1, 1) if kind == "promote" else Timing(0, 1)
