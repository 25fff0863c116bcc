"""Figure 12: compute utilisation and cycles as experts share fewer regions, static and dynamic tiles."""

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

TITLE = "regions that experts share: utilisation and cycles"
PANELS = 2
PAPER_GAIN = {"static": 2.64, "dynamic": 2.51}
PAPER_OVERHEAD = {"static": 0.01, "dynamic": 0.05}
PAPER_FLOPS = 3.81


def points() -> int:
    """Runs that `make` takes."""
    return 2 * len(REGIONS)


def make(lab: Lab, traces: Traces, model: MoeModel = QWEN, batch: int = 64, regions: Sequence[int] = REGIONS,
         tile_rows: int = STATIC_ROWS, tile_f: int = TILE_F) -> Figure:
    """The figure; other sizes than the paper's are for tests."""
    figure = Figure(12, TITLE, COLUMNS, [], notes=[
        f"Inputs: {traces.said}.",
        "Utilisation: FLOPs, padding included, over cycles x FLOPs/cycle of the operators that compute on tiles."])
    flops = {}
    for tiling, rows in (("static", tile_rows), ("dynamic", None)):
        measured = measure_regions(lab, traces, rows, model, batch, regions, tile_f)
        figure.rows += region_rows(tiling, measured)
        base, count = measured[max(measured)], shared_regions(measured)
        shared = measured[count]
        flops[tiling] = base.flops
        figure.claims += [
            Claim(f"{tiling} tiles: utilisation with {count} regions over {max(measured)}", PAPER_GAIN[tiling],
                  shared.utilisation / base.utilisation, "section 5.3", bar=0.10),
            Claim(f"{tiling} tiles: more cycles with {count} regions", PAPER_OVERHEAD[tiling],
                  shared.cycles / base.cycles - 1, "section 5.3", at_most=True)]
        overheads = ", ".join(f"{n}: {m.cycles / base.cycles - 1:+.1%}" for n, m in measured.items())
        figure.notes.append(f"{tiling} tiles, more cycles by regions: {overheads}.")
    figure.claims.append(Claim("FLOPs of static tiles over dynamic ones", PAPER_FLOPS, flops["static"] /
                               flops["dynamic"], "caption of the figure in the first arXiv version"))
    return figure


def sketch(figure: Figure, axes: Sequence[Any]) -> None:
    """Utilisation as bars, cycles as a line, a panel a tiling."""
    for axis, tiling in zip(axes, ("static", "dynamic")):
        records = figure.select(tiling=tiling)
        x = range(len(records))
        axis.bar(x, [100 * r["compute_utilisation"] for r in records], 0.6, color=COLORS[tiling], label="utilisation")
        axis.set_xticks(list(x), [str(r["regions"]) for r in records])
        axis.set(title=f"{tiling} tiles", xlabel="regions", ylabel="compute utilisation (%)")
        other = axis.twinx()
        other.plot(x, [r["cycles"] for r in records], "o-", color="black", label="cycles")
        axis.margins(y=0.3)
        other.set_ylim(0, 1.3 * max(r["cycles"] for r in records))
        other.set_ylabel("cycles")
        axis.legend(loc="upper left")
        other.legend(loc="upper right")
