"""Cycles, traffic and memory of static tiles as multiples of the least, as figures 19 and 20 show them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .figure import Claim, Figure
from .lab import Lab
from .plot import COLORS
from .tiling import DYNAMIC, measure_tilings
from .traces import Traces
from .workloads import MoeModel

__all__ = ["COLUMNS", "make_ratios", "sketch"]

COLUMNS = ("model", "batch", "tile", "metric", "value", "ratio_to_dynamic")
_METRICS = ("cycles", "offchip_bytes", "onchip_bytes_figures-used", "onchip_bytes_figures", "onchip_bytes_spec")
_INFERRED = ("What this figure shows is inferred: the artifact has no script for it. The first arXiv version of the "
             "paper compares two static tile sizes with dynamic tiles in this way (its figures 6 and 7), and its "
             "figure 11 is figure 21 now.")


def make_ratios(number: int, title: str, lab: Lab, traces: Traces, models: Sequence[MoeModel], batch: int,
                tiles: Sequence[int], tile_f: int, speedup: float, memory: float, shared: str) -> Figure:
    """The figure; ``speedup`` and ``memory`` are the paper's geometric means over ``shared``."""
    figure = Figure(number, title, COLUMNS, [], notes=[
        _INFERRED, f"Inputs: {traces.said}.",
        "onchip_bytes_figures-used: experts without tokens left out of static programs too, as in that version."])
    for model in models:
        measured = measure_tilings(lab, traces, model, batch, tiles, tile_f)
        values = {tile: {"cycles": m.cycles, "offchip_bytes": m.offchip_bytes,
                         **{f"onchip_bytes_{name}": n for name, n in m.onchip.items()}} for tile, m in measured.items()}
        for tile, found in values.items():
            figure.rows += [(model.name, batch, tile, metric, found[metric], found[metric] / values[DYNAMIC][metric])
                            for metric in _METRICS]
    source = f"first arXiv version, section 5.2: geometric mean over {shared}"
    for what, metric, paper in (("cycles", "cycles", speedup), ("on-chip memory", "onchip_bytes_figures-used", memory)):
        ratios = [r["ratio_to_dynamic"] for r in figure.select(metric=metric) if r["tile"] != DYNAMIC]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        figure.claims.append(Claim(f"{what} of static tiles over dynamic, geometric mean of this figure", paper, mean,
                                   source))
    return figure


def sketch(figure: Figure, axes: Sequence[Any]) -> None:
    """Bars of each metric, a panel a model."""
    names = list(dict.fromkeys(record["model"] for record in figure.records()))
    for axis, name in zip(axes, names):
        records = figure.select(model=name)
        tiles = list(dict.fromkeys(r["tile"] for r in records))
        shown = ("cycles", "offchip_bytes", "onchip_bytes_figures-used")
        for k, tile in enumerate(tiles):
            heights = [next(r["ratio_to_dynamic"] for r in records if r["tile"] == tile and r["metric"] == metric)
                       for metric in shown]
            color = COLORS["dynamic"] if tile == DYNAMIC else COLORS[("static", "other", "more")[k % 3]]
            axis.bar([x + 0.8 * (k + 0.5) / len(tiles) - 0.4 for x in range(len(shown))], heights, 0.8 / len(tiles),
                     color=color, label=tile if tile == DYNAMIC else f"tile = {tile}")
        axis.set_xticks(range(len(shown)), ["cycles", "off-chip traffic", "on-chip memory"])
        axis.set(yscale="log", title=name, ylabel="over dynamic tiles")
        axis.legend()
