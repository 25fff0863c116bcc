"""Figure 9: static against dynamic tiles in mixture-of-experts layers, 64 tokens."""

from __future__ import annotations

from collections.abc import Sequence

from .figure import Claim, Figure
from .lab import Lab
from .tiling import COLUMNS, DYNAMIC, distances, measure_tilings, point_count, sketch, tiling_rows
from .traces import Traces
from .workloads import MIXTRAL, QWEN, MoeModel

__all__ = ["PANELS", "TITLE", "make", "points", "sketch"]

TITLE = "cycles over on-chip memory, static and dynamic tiles, 64 tokens"
PANELS = 2
TILES = (8, 16, 32, 64)
COMPUTE_BW = 4096
PAPER_PID = {"Mixtral-8x7B": 1.33, "Qwen3-30B-A3B": 2.11}


def points() -> int:
    """Runs that `make` takes."""
    return point_count((MIXTRAL, QWEN), TILES)


def make(lab: Lab, traces: Traces, models: Sequence[MoeModel] = (MIXTRAL, QWEN), batch: int = 64,
         tiles: Sequence[int] = TILES, tile_f: int = 64) -> Figure:
    """The figure; other sizes than the paper's are for tests."""
    figure = Figure(9, TITLE, COLUMNS, [], notes=[
        f"Inputs: {traces.said}.",
        "On-chip memory of static programs counts every expert, used or not; dynamic ones get theirs as they run, so "
        "experts without tokens hold nothing (the paper's plot does the same).",
        "Links hold 2 tiles; links of single rows hold the batch."])
    for model in models:
        measured = measure_tilings(lab, traces, model, batch, tiles, tile_f, COMPUTE_BW)
        figure.rows += tiling_rows(model, batch, COMPUTE_BW, measured)
        found = distances(measured)
        paper = PAPER_PID.get(model.name)
        if paper is not None:
            figure.claims.append(Claim(f"PID, {model.name}", paper, found["figures"], "section 5.2", bar=0.08))
        figure.notes.append(f"{model.name}: PID {found['figures']:.3f} in figure accounting, {found['spec']:.3f} in "
                            "that of SPEC section 5.")
        dynamic = measured[DYNAMIC]
        for tile, speed, memory in _SIDE_CLAIMS.get(model.name, ()):
            if tile not in measured:
                continue
            static = measured[tile]
            if speed:
                figure.claims.append(Claim(f"{model.name}: cycles of tile {tile} over dynamic", speed,
                                           static.cycles / dynamic.cycles, "section 5.2"))
            if memory:
                figure.claims.append(Claim(f"{model.name}: memory of tile {tile} over dynamic", memory,
                                           static.onchip["figures"] / dynamic.onchip["figures"], "section 5.2"))
    return figure


_SIDE_CLAIMS = {"Mixtral-8x7B": (("16", 1.65, 0), ("32", 0, 1.33)),
                "Qwen3-30B-A3B": (("8", 1.69, 2.1), ("64", 0, 5.05))}
"""Tile, the paper's ratio of cycles and of memory to dynamic tiles; 0: none given."""
