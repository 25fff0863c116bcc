"""Figure 19 (inferred, see `sim.figures.ratios`): static tiles over dynamic ones, 64 tokens."""

from __future__ import annotations

from collections.abc import Sequence

from .figure import Claim, Figure
from .lab import Lab
from .ratios import COLUMNS, INFERRED, ratio_rows, sketch
from .tiling import point_count
from .traces import Traces
from .workloads import MIXTRAL, QWEN, MoeModel

__all__ = ["BATCH", "PANELS", "TILES", "TITLE", "make", "points", "sketch"]

TITLE = "cycles, traffic and memory of static tiles over dynamic, 64 tokens"
PANELS = 2
BATCH, TILES = 64, (16, 64)
PAPER_OVERHEAD = 0.25


def points() -> int:
    """Runs that `make` takes."""
    return point_count((MIXTRAL, QWEN), TILES)


def make(lab: Lab, traces: Traces, models: Sequence[MoeModel] = (MIXTRAL, QWEN), batch: int = BATCH,
         tiles: Sequence[int] = TILES, tile_f: int = 64) -> Figure:
    """The figure; other sizes than the paper's are for tests."""
    figure = Figure(19, TITLE, COLUMNS, ratio_rows(lab, traces, models, batch, tiles, tile_f),
                    notes=[*INFERRED, f"Inputs: {traces.said}."])
    for record in figure.select(model=QWEN.name, tile="16", metric="cycles"):
        figure.claims.append(Claim(f"{QWEN.name}: more cycles of tile 16", PAPER_OVERHEAD,
                                   record["ratio_to_dynamic"] - 1, "first arXiv version, section 5.2", at_most=True))
    return figure
