"""Figure 20 (inferred, see `sim.figures.ratios`): static tiles over dynamic ones, 1024 tokens."""

from __future__ import annotations

from collections.abc import Sequence

from .figure import Figure
from .lab import Lab
from .ratios import make_ratios, sketch
from .tiling import point_count
from .traces import Traces
from .workloads import MIXTRAL, QWEN, MoeModel

__all__ = ["PANELS", "TITLE", "make", "points", "sketch"]

TITLE = "cycles, traffic and memory of static tiles over dynamic, 1024 tokens"
PANELS = 2
TILES = (256, 1024)


def points() -> int:
    """Runs that `make` takes."""
    return point_count((MIXTRAL, QWEN), TILES)


def make(lab: Lab, traces: Traces, models: Sequence[MoeModel] = (MIXTRAL, QWEN), batch: int = 1024,
         tiles: Sequence[int] = TILES, tile_f: int = 64) -> Figure:
    """The figure; other sizes than the paper's are for tests."""
    return make_ratios(20, TITLE, lab, traces, models, batch, tiles, tile_f, 1.45, 2.18,
                       "this figure and the one before")
