"""Figure 13: what sharing regions frees, static tiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .figure import Claim, Figure
from .lab import Lab
from .plot import COLORS
from .sharing import COLUMNS, REGIONS, STATIC_ROWS, TILE_F, measure_regions, region_rows, shared_regions
from .traces import Traces
from .workloads import QWEN, MoeModel

__all__ = ["PANELS", "TITLE", "make", "points", "sketch"]

TITLE = "regions that experts share: resources, static tiles"
PANELS = 3
PAPER_COMPUTE_FREED, PAPER_MEMORY_FREED = 0.62, 0.46


def points() -> int:
    """Runs that `make` takes."""
    return len(REGIONS)


def make(lab: Lab, traces: Traces, model: MoeModel = QWEN, batch: int = 64, regions: Sequence[int] = REGIONS,
         tile_rows: int = STATIC_ROWS, tile_f: int = TILE_F) -> Figure:
    """The figure; other sizes than the paper's are for tests."""
    measured = measure_regions(lab, traces, tile_rows, model, batch, regions, tile_f)
    base, count = measured[max(measured)], shared_regions(measured)
    shared = measured[count]
    freed = {name: 1 - shared.onchip[name] / base.onchip[name] for name in ("figures", "spec")}
    # Ours repeats a packed tile for the weight tiles behind the merge, in the region.
    repeated = (model.experts - count) * tile_rows * model.hidden * 4
    before_merge = 1 - (shared.onchip["figures"] + repeated) / base.onchip["figures"]
    why = (f"with the repeat of packed tiles before the merge, one an expert, {before_merge:.1%} are freed; it is "
           "behind the merge here, one a region")
    claims = [
        Claim(f"compute freed with {count} regions of {max(measured)}", PAPER_COMPUTE_FREED,
              1 - shared.allocated / base.allocated, "section 5.3"),
        Claim(f"on-chip memory freed with {count} regions, figure accounting", PAPER_MEMORY_FREED, freed["figures"],
              "section 5.3", why=why),
        Claim(f"on-chip memory freed with {count} regions, SPEC section 5", PAPER_MEMORY_FREED, freed["spec"],
              "section 5.3")]
    return Figure(13, TITLE, COLUMNS, region_rows("static", measured), claims, [
        f"Inputs: {traces.said}.",
        "Allocated compute: FLOPs/cycle of the operators that compute on tiles, casts left out."])


def sketch(figure: Figure, axes: Sequence[Any]) -> None:
    """Cycles with memory bandwidth, on-chip memory, allocated compute, a panel each."""
    records = figure.records()
    x = range(len(records))
    names = [str(r["regions"]) for r in records]
    values = (("cycles", [r["cycles"] for r in records]),
              ("on-chip memory (MiB, figure accounting)", [r["onchip_bytes_figures"] / 2**20 for r in records]),
              ("allocated compute (FLOPs/cycle)", [r["allocated_flops_per_cycle"] for r in records]))
    for axis, (name, heights) in zip(axes, values):
        axis.bar(x, heights, 0.6, color=COLORS["static"])
        axis.set_xticks(list(x), names)
        axis.set(xlabel="regions", ylabel=name)
    bandwidth = axes[0].twinx()
    bandwidth.plot(x, [100 * r["memory_utilisation"] for r in records], "o-", color=COLORS["dynamic"])
    bandwidth.set_ylim(0, 100)
    bandwidth.set_ylabel("off-chip bandwidth used (%)")
