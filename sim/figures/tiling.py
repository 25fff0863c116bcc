"""Static and dynamic tiles of a mixture-of-experts layer, as figures 9, 10, 19 and 20 compare them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .figure import Figure
from .lab import Lab, Measured
from .pid import improvement_distance
from .plot import COLORS
from .traces import Traces
from .workloads import MoeModel, moe_point

__all__ = ["ARTIFACT_DYNAMIC_BW", "COLUMNS", "DYNAMIC", "distances", "measure_tilings", "point_count", "sketch",
           "tiling_rows"]

ARTIFACT_DYNAMIC_BW = 6400
"""FLOPs/cycle of each operator of the dynamic program in the paper's artifact; its static one has 4096."""

COLUMNS = ("model", "batch", "tile", "compute_bw", "cycles", "offchip_bytes", "onchip_bytes_figures",
           "onchip_bytes_spec", "compute_utilisation", "memory_utilisation")
DYNAMIC = "dynamic"
Measurements = dict[str, Measured]


def point_count(models: Sequence[MoeModel], tiles: Sequence[int]) -> int:
    """Runs of `measure_tilings` over ``models``."""
    return len(models) * (len(tiles) + 1)


def measure_tilings(lab: Lab, traces: Traces, model: MoeModel, batch: int, tiles: Sequence[int], tile_f: int = 64,
                    compute_bw: int = 4096, dynamic_bw: int = 0) -> Measurements:
    """The layer with each static tile and with dynamic ones (these with ``dynamic_bw`` FLOPs/cycle, if it is given), by
    rows of a tile or `DYNAMIC`."""
    chosen = traces.routing(model.trace, batch, model.top_k, model.experts).values
    found = {str(rows): lab.run(moe_point(model, chosen, rows, compute_bw, tile_f)) for rows in tiles}
    return found | {DYNAMIC: lab.run(moe_point(model, chosen, None, dynamic_bw or compute_bw, tile_f))}


def tiling_rows(model: MoeModel, batch: int, compute_bw: int, measured: Measurements) -> list[tuple[Any, ...]]:
    """Rows of `COLUMNS`."""
    return [(model.name, batch, tile, compute_bw, m.cycles, m.offchip_bytes, m.onchip["figures"], m.onchip["spec"],
             m.utilisation, m.memory_utilisation) for tile, m in measured.items()]


def distances(measured: Measurements) -> dict[str, float]:
    """Pareto improvement distance of dynamic tiles to the static ones, by accounting of memory."""
    found = {}
    for accounting in ("figures", "spec"):
        points = {tile: (float(m.cycles), float(m.onchip[accounting])) for tile, m in measured.items()}
        dynamic = points.pop(DYNAMIC)
        found[accounting] = improvement_distance(dynamic, list(points.values()))
    return found


def sketch(figure: Figure, axes: Sequence[Any]) -> None:
    """Cycles over on-chip memory, a panel a model."""
    names = list(dict.fromkeys(record["model"] for record in figure.records()))
    for axis, name in zip(axes, names):
        records = figure.select(model=name)
        static = [r for r in records if r["tile"] != DYNAMIC]
        axis.plot([r["onchip_bytes_figures"] / 2**20 for r in static], [r["cycles"] for r in static], "o-",
                  color=COLORS["static"], label="static")
        for r in static:
            axis.annotate(r["tile"], (r["onchip_bytes_figures"] / 2**20, r["cycles"]), (3, 4),
                          textcoords="offset points")
        for k, bw in enumerate(sorted({r["compute_bw"] for r in records if r["tile"] == DYNAMIC})):
            r, = (r for r in records if r["tile"] == DYNAMIC and r["compute_bw"] == bw)
            axis.plot(r["onchip_bytes_figures"] / 2**20, r["cycles"], "s^"[k], color=COLORS["dynamic"],
                      label=f"dynamic, {bw} FLOPs/cycle")
        axis.set(xscale="log", yscale="log", title=name, xlabel="on-chip memory (MiB, figure accounting)",
                 ylabel="cycles")
        axis.margins(0.1)
        axis.legend()
