"""Cycles, traffic and memory of static tiles as multiples of dynamic ones', as figures 19 and 20 show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .figure import Figure
from .lab import Lab
from .plot import COLORS
from .tiling import DYNAMIC, measure_tilings
from .traces import Traces
from .workloads import MoeModel

__all__ = ["COLUMNS", "INFERRED", "MEMORY", "ratio_rows", "sketch", "static_ratios"]

COLUMNS = ("model", "batch", "tile", "metric", "value", "ratio_to_dynamic")
MEMORY = "onchip_bytes_figures-used"
_METRICS = ("cycles", "offchip_bytes", MEMORY, "onchip_bytes_figures", "onchip_bytes_spec")
INFERRED = [
    "What this figure shows is inferred: the artifact has no script for it. The first arXiv version of the paper "
    "compares two static tile sizes with dynamic tiles in this way (its figures 6 and 7), and its figure 11 is figure "
    "21 now.",
    f"{MEMORY}: experts without tokens left out of static programs too, as in that version."]


def ratio_rows(lab: Lab, traces: Traces, models: Sequence[MoeModel], batch: int, tiles: Sequence[int], tile_f: int,
               dynamic_bw: int = 0) -> list[tuple[Any, ...]]:
    """Rows of `COLUMNS`."""
    rows: list[tuple[Any, ...]] = []
    for model in models:
        measured = measure_tilings(lab, traces, model, batch, tiles, tile_f, dynamic_bw=dynamic_bw)
        values = {tile: {"cycles": m.cycles, "offchip_bytes": m.offchip_bytes,
                         **{f"onchip_bytes_{name}": n for name, n in m.onchip.items()}} for tile, m in measured.items()}
        rows += [(model.name, batch, tile, metric, found[metric], found[metric] / values[DYNAMIC][metric])
                 for tile, found in values.items() for metric in _METRICS]
    return rows


def static_ratios(rows: Sequence[tuple[Any, ...]], metric: str) -> list[float]:
    """Of static tiles, over dynamic ones."""
    return [row[5] for row in rows if row[3] == metric and row[2] != DYNAMIC]


def sketch(figure: Figure, axes: Sequence[Any]) -> None:
    """Bars of each metric, a panel a model."""
    names = list(dict.fromkeys(record["model"] for record in figure.records()))
    for axis, name in zip(axes, names):
        records = figure.select(model=name)
        tiles = list(dict.fromkeys(r["tile"] for r in records))
        shown = ("cycles", "offchip_bytes", MEMORY)
        for k, tile in enumerate(tiles):
            heights = [next(r["ratio_to_dynamic"] for r in records if r["tile"] == tile and r["metric"] == metric)
                       for metric in shown]
            color = COLORS["dynamic"] if tile == DYNAMIC else COLORS[("static", "other", "more")[k % 3]]
            axis.bar([x + 0.8 * (k + 0.5) / len(tiles) - 0.4 for x in range(len(shown))], heights, 0.8 / len(tiles),
                     color=color, label=tile if tile == DYNAMIC else f"tile = {tile}")
        axis.set_xticks(range(len(shown)), ["cycles", "off-chip traffic", "on-chip memory"])
        axis.set(yscale="log", title=name, ylabel="over dynamic tiles")
        axis.margins(y=0.25)
        axis.legend()
