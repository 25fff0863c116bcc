"""Figure 20 (inferred, see `sim.figures.ratios`): static tiles over dynamic ones, 1024 tokens."""

from __future__ import annotations

from collections.abc import Sequence

from . import figure19
from .figure import Claim, Figure
from .lab import Lab
from .parallel import geometric_mean
from .ratios import COLUMNS, INFERRED, MEMORY, ratio_rows, sketch, static_ratios
from .tiling import ARTIFACT_DYNAMIC_BW, point_count
from .traces import Traces
from .workloads import MIXTRAL, QWEN, MoeModel

__all__ = ["PANELS", "TITLE", "make", "points", "sketch"]

TITLE = "cycles, traffic and memory of static tiles over dynamic, 1024 tokens"
PANELS = 2
TILES = (256, 1024)
PAPER = ((MIXTRAL.name, "cycles", 3.8), (MIXTRAL.name, MEMORY, 3.7), (QWEN.name, MEMORY, 8.1))
"""Numbers over the plot's clipped bars, of tiles of 1024 rows."""
PAPER_SPEEDUP, PAPER_MEMORY = 1.45, 2.18


def points() -> int:
    """Runs that `make` takes."""
    return point_count((MIXTRAL, QWEN), TILES) + figure19.points()


def make(lab: Lab, traces: Traces, models: Sequence[MoeModel] = (MIXTRAL, QWEN), batch: int = 1024,
         tiles: Sequence[int] = TILES, tile_f: int = 64) -> Figure:
    """The figure; other sizes than the paper's are for tests."""
    rows = ratio_rows(lab, traces, models, batch, tiles, tile_f, ARTIFACT_DYNAMIC_BW)
    figure = Figure(20, TITLE, COLUMNS, rows, notes=[
        *INFERRED, f"Inputs: {traces.said}.",
        f"Dynamic program with {ARTIFACT_DYNAMIC_BW} FLOPs/cycle, static ones with 4096, as in the artifact."])
    for model, metric, paper in PAPER:
        for record in figure.select(model=model, tile="1024", metric=metric):
            what = "cycles" if metric == "cycles" else "on-chip memory"
            figure.claims.append(Claim(f"{model}: {what} of tile 1024 over dynamic", paper, record["ratio_to_dynamic"],
                                       "figure 7 of the first arXiv version"))
    if models == (MIXTRAL, QWEN):
        rows = rows + ratio_rows(lab, traces, models, figure19.BATCH, figure19.TILES, tile_f)
        for what, metric, paper in (("cycles", "cycles", PAPER_SPEEDUP), ("on-chip memory", MEMORY, PAPER_MEMORY)):
            figure.claims.append(Claim(
                f"{what} of static tiles over dynamic, geometric mean of figures 19 and 20", paper,
                geometric_mean(static_ratios(rows, metric)), "first arXiv version, section 5.2"))
    return figure
