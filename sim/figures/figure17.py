"""Figure 17: whole models, dynamic against static."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from .figure import Claim, Figure
from .lab import Lab, Measured
from .plot import COLORS
from .tiling import DYNAMIC
from .traces import Traces
from .workloads import MIXTRAL, QWEN, MoeModel, layer_point

__all__ = ["PANELS", "TITLE", "make", "points", "sketch"]

TITLE = "whole models: static and dynamic"
PANELS = 2
BATCH, DEVIATION = 64, 996
TILES = (8, 16, 32, 64)
REGIONS = {"Qwen3-30B-A3B": (0, 32)}
"""Regions of dynamic implementations (0: one for each expert); those with fewer than experts are figure 12's."""
COLUMNS = ("model", "implementation", "tile", "regions", "layer_cycles", "model_cycles", "over_dynamic",
           "onchip_bytes_figures", "onchip_bytes_spec", "allocated_flops_per_cycle", "offchip_bytes",
           "memory_utilisation")
PAPER_MEMORY_MATCHED = {"Mixtral-8x7B": 1.27, "Qwen3-30B-A3B": 1.15}
PAPER_PERFORMANCE_MATCHED = {"Mixtral-8x7B": 1.05, "Qwen3-30B-A3B": 1.14}
PAPER_MEMORY_SAVED = {"Mixtral-8x7B": 0.20, "Qwen3-30B-A3B": 0.69}
PAPER_COMPUTE_SAVED = 0.54
PAPER_SAVES_MATCHED = {"Qwen3-30B-A3B": 0.69}
"""On-chip memory that dynamic saves over the static implementation which the paper calls matched in memory, where it
says so: no static tile of Qwen has as little."""


def points() -> int:
    """Runs that `make` takes."""
    return sum(len(TILES) + len(REGIONS.get(model.name, (0,))) for model in (MIXTRAL, QWEN))


def make(lab: Lab, traces: Traces, models: Sequence[MoeModel] = (MIXTRAL, QWEN), batch: int = BATCH,
         tiles: Sequence[int] = TILES, regions: Mapping[str, Sequence[int]] = REGIONS, **settings: Any) -> Figure:
    """The figure; other sizes than the paper's, and ``settings`` of `layer_point`, are for tests."""
    figure = Figure(17, TITLE, COLUMNS, [], notes=[
        f"Inputs: {traces.said}, of one layer; a model is as many such layers.",
        "Queries, keys and values, attention of all KV heads one after the other on 4 regions, experts; the output "
        "projection, norms and residuals are left out, as in the paper. Static: attention interleaved, from one queue; "
        "a region for each expert.",
        "Same memory: the static tile whose on-chip memory is nearest that of dynamic tiles, or, of Qwen, over which "
        "dynamic tiles save nearest to the 69% that the paper says with its ratio: no static one has as little memory. "
        "Same performance: the smallest tile whose layer takes at most 1% longer than the best."])
    for model in models:
        chosen = traces.routing(model.trace, batch, model.top_k, model.experts).values
        lengths = traces.lengths(batch, DEVIATION).values
        static = {tile: lab.run(layer_point(model, chosen, lengths, schedule="queued", tile_rows=tile, **settings))
                  for tile in tiles}
        dynamic = {count or model.experts: lab.run(layer_point(
            model, chosen, lengths, schedule="dynamic", tile_rows=None, regions=count, **settings))
            for count in regions.get(model.name, (0,))}
        base = dynamic[model.experts]
        figure.rows += [_row(model, "static", tile, model.experts, m, base) for tile, m in static.items()]
        figure.rows += [_row(model, DYNAMIC, DYNAMIC, count, m, base) for count, m in dynamic.items()]
        if model.name in PAPER_MEMORY_MATCHED:
            figure.claims += _claims(model, static, dynamic, base)
            busy = len({expert for row in chosen for expert in row})
            if busy < model.experts:
                figure.claims.append(Claim(f"{model.name}: share of experts without tokens", PAPER_COMPUTE_SAVED,
                                           1 - busy / model.experts, "section 5.5, as compute saved"))
                figure.notes.append(
                    f"{model.name}: what the paper says of memory and compute fits dynamic tiles with a region for "
                    "each expert, experts without tokens left out, over static tiles of 32 rows.")
    return figure


def _row(model: MoeModel, way: str, tile: int | str, regions: int, m: Measured, base: Measured) -> tuple[Any, ...]:
    return (model.name, way, str(tile), regions, m.cycles, m.cycles * model.layers, m.cycles / base.cycles,
            m.onchip["figures"], m.onchip["spec"], m.allocated, m.offchip_bytes, m.memory_utilisation)


def _claims(model: MoeModel, static: Mapping[int, Measured], dynamic: Mapping[int, Measured],
            base: Measured) -> list[Claim]:
    def memory(m: Measured) -> int:
        return m.onchip["figures"]

    best = min(m.cycles for m in static.values())
    least = min(static, key=lambda tile: (abs(math.log(memory(static[tile]) / memory(base))), tile))
    saves = PAPER_SAVES_MATCHED.get(model.name)
    like_memory = least if saves is None else min(
        static, key=lambda tile: (abs(1 - memory(base) / memory(static[tile]) - saves), tile))
    matched = "with the same memory" if saves is None else f"with memory of which dynamic saves {saves:.0%}"
    like_speed = min(tile for tile, m in static.items() if m.cycles <= 1.01 * best)
    ratio = static[like_memory].cycles / base.cycles
    paper = PAPER_MEMORY_MATCHED[model.name]
    why = ""
    if abs(ratio / paper - 1) > 0.10:
        why = "the paper does not say which tile it took; over dynamic, by tile: " + ", ".join(
            f"{tile}: {m.cycles / base.cycles:.2f} with {memory(m) / memory(base):.2f} of the memory"
            for tile, m in static.items())
    found = [
        Claim(f"{model.name}: static {matched} (tile {like_memory}) over dynamic", paper, ratio,
              "section 5.5", bar=0.10, why=why),
        Claim(f"{model.name}: static with the same performance (tile {like_speed}) over dynamic",
              PAPER_PERFORMANCE_MATCHED[model.name], static[like_speed].cycles / base.cycles, "section 5.5"),
        Claim(f"{model.name}: on-chip memory saved over tile 32", PAPER_MEMORY_SAVED[model.name],
              1 - memory(base) / memory(static[32]), "section 5.5")]
    fewer = {count: m for count, m in dynamic.items() if count < model.experts}
    found += [Claim(f"{model.name}: compute saved with {count} regions", PAPER_COMPUTE_SAVED,
                    1 - m.allocated / base.allocated, "section 5.5") for count, m in fewer.items()]
    found += [Claim(f"{model.name}: static with the least memory (tile {least}) over dynamic", paper,
                    static[least].cycles / base.cycles, "section 5.5")] if least != like_memory else []
    found += [Claim(f"{model.name}: static {matched} over dynamic with {count} regions", paper,
                    static[like_memory].cycles / m.cycles, "section 5.5") for count, m in fewer.items()]
    return found


def sketch(figure: Figure, axes: Sequence[Any]) -> None:
    """Cycles of a layer over on-chip memory, a panel a model."""
    names = list(dict.fromkeys(record["model"] for record in figure.records()))
    for axis, name in zip(axes, names):
        for way, color, marker in (("static", COLORS["static"], "o-"), (DYNAMIC, COLORS["dynamic"], "s")):
            records = figure.select(model=name, implementation=way)
            memory = [r["onchip_bytes_figures"] / 2**20 for r in records]
            axis.plot(memory, [r["layer_cycles"] for r in records], marker, color=color, label=way)
            for r in records:
                text = r["tile"] if way == "static" else f"{r['regions']} regions"
                axis.annotate(text, (r["onchip_bytes_figures"] / 2**20, r["layer_cycles"]), (3, 4),
                              textcoords="offset points")
        axis.set(xscale="log", title=name, xlabel="on-chip memory (MiB, figure accounting)", ylabel="cycles of a layer")
        axis.margins(0.15)
        axis.set_ylim(bottom=0)
        axis.legend()
