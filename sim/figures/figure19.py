"""Figure 19 (inferred, see `sim.figures.ratios`): static tiles over dynamic ones, 64 tokens."""

from __future__ import annotations

from collections.abc import Sequence

from .figure import Figure
from .lab import Lab
from .ratios import make_ratios, sketch
from .tiling import point_count
from .traces import Traces
from .workloads import MIXTRAL, QWEN, MoeModel

__all__ = ["PANELS", "TITLE", "make", "points", "sketch"]

TITLE = "cycles, traffic and memory of static tiles over dynamic, 64 tokens"
PANELS = 2
TILES = (16, 64)


def points() -> int:
    """Runs that `make` takes."""
    return point_count((MIXTRAL, QWEN), TILES)


def make(lab: Lab, traces: Traces, models: Sequence[MoeModel] = (MIXTRAL, QWEN), batch: int = 64,
         tiles: Sequence[int] = TILES, tile_f: int = 64) -> Figure:
    """The figure; other sizes than the paper's are for tests."""
    return make_ratios(19, TITLE, lab, traces, models, batch, tiles, tile_f, 1.45, 2.18, "this figure and the next")
