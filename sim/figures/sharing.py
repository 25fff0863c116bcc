"""Experts that share regions of the hardware in turn, as figures 12 and 13 show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .lab import Lab, Measured
from .traces import Traces
from .workloads import QWEN, MoeModel, moe_point

__all__ = ["COLUMNS", "COMPUTE_BW", "PAPER_REGIONS", "REGIONS", "STATIC_ROWS", "TILE_F", "measure_regions",
           "region_rows", "shared_regions"]

REGIONS = (128, 64, 32, 16, 8, 4)
STATIC_ROWS, TILE_F, COMPUTE_BW, BATCH = 32, 48, 1024, 64
PAPER_REGIONS = 32
"""The paper names no number of regions for its claims. 62% of compute freed says 32: with 5 operators a region and one
an expert, 1 - (5 x 32 + 128) / (5 x 128 + 128) is 62.5%; 64 regions free 42%, 16 free 73%."""
COLUMNS = ("tiling", "regions", "cycles", "overhead", "compute_utilisation", "allocated_flops_per_cycle",
           "onchip_bytes_figures", "onchip_bytes_spec", "memory_utilisation", "offchip_bytes", "flops")


def measure_regions(lab: Lab, traces: Traces, tile_rows: int | None, model: MoeModel = QWEN, batch: int = BATCH,
                    regions: Sequence[int] = REGIONS, tile_f: int = TILE_F) -> dict[int, Measured]:
    """The layer by number of regions; ``tile_rows``: of static tiles, None for dynamic ones."""
    chosen = traces.routing(model.trace, batch, model.top_k, model.experts).values
    return {count: lab.run(moe_point(model, chosen, tile_rows, COMPUTE_BW, tile_f, regions=count))
            for count in regions}


def region_rows(tiling: str, measured: dict[int, Measured]) -> list[tuple[Any, ...]]:
    """Rows of `COLUMNS`; ``overhead``: more cycles than with a region for each expert, as a share."""
    base = measured[max(measured)].cycles
    return [(tiling, count, m.cycles, m.cycles / base - 1, m.utilisation, m.allocated, m.onchip["figures"],
             m.onchip["spec"], m.memory_utilisation, m.offchip_bytes, m.flops) for count, m in measured.items()]


def shared_regions(measured: dict[int, Measured]) -> int:
    """The number of regions that claims are about: the paper's, scaled where there are other experts."""
    wanted = max(measured) * PAPER_REGIONS // max(REGIONS)
    return min(measured, key=lambda count: (abs(count - wanted), count))
