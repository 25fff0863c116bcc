"""Figure 17: whole models, dynamic against static."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .figure import Claim, Figure
from .lab import Lab, Measured
from .plot import COLORS
from .traces import Traces
from .workloads import MIXTRAL, QWEN, MoeModel, layer_point

__all__ = ["PANELS", "TITLE", "make", "points", "sketch"]

TITLE = "whole models: static and dynamic"
PANELS = 2
BATCH, DEVIATION = 64, 996
MEMORY, PERFORMANCE, DYNAMIC = "static, memory matched", "static, performance matched", "dynamic"
WAYS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "Mixtral-8x7B": {MEMORY: {"tile_rows": 16}, PERFORMANCE: {"tile_rows": 32}, DYNAMIC: {"tile_rows": None}},
    "Qwen3-30B-A3B": {MEMORY: {"tile_rows": 8}, PERFORMANCE: {"tile_rows": 64},
                      DYNAMIC: {"tile_rows": None, "regions": 32}}}
"""Experts of each implementation. Memory matched: the static tile whose on-chip memory is nearest that of dynamic tiles
in figure 9; performance matched: the one whose cycles are. Dynamic Qwen shares 32 regions (figure 12)."""
COLUMNS = ("model", "implementation", "schedule", "tile", "regions", "layer_cycles", "model_cycles", "over_dynamic",
           "onchip_bytes_figures", "onchip_bytes_spec", "allocated_flops_per_cycle", "offchip_bytes",
           "memory_utilisation")
PAPER = {("Mixtral-8x7B", MEMORY): 1.27, ("Qwen3-30B-A3B", MEMORY): 1.15, ("Mixtral-8x7B", PERFORMANCE): 1.05,
         ("Qwen3-30B-A3B", PERFORMANCE): 1.14}


def points() -> int:
    """Runs that `make` takes."""
    return sum(map(len, WAYS.values()))


def make(lab: Lab, traces: Traces, models: Sequence[MoeModel] = (MIXTRAL, QWEN),
         ways: Mapping[str, Mapping[str, Mapping[str, Any]]] = WAYS, batch: int = BATCH, **settings: Any) -> Figure:
    """The figure; other sizes than the paper's, and ``settings`` of `layer_point`, are for tests."""
    figure = Figure(17, TITLE, COLUMNS, [], notes=[
        f"Inputs: {traces.said}, of one layer; a model is as many such layers.",
        "Queries, keys and values, attention of all KV heads on 4 regions, experts; the output projection, norms and "
        "residuals are left out, as in the paper. Static: attention interleaved, from one queue.",
        "The paper does not name the static tiles that it matches: see WAYS in sim/figures/figure17.py."])
    for model in models:
        chosen = traces.routing(model.trace, batch, model.top_k, model.experts).values
        lengths = traces.lengths(batch, DEVIATION).values
        found: dict[str, Measured] = {}
        for name, way in ways[model.name].items():
            found[name] = lab.run(layer_point(model, chosen, lengths, schedule=_schedule(name), **way, **settings))
        dynamic = found[DYNAMIC]
        for name, m in found.items():
            way = ways[model.name][name]
            figure.rows.append((
                model.name, name, _schedule(name), way["tile_rows"] or "dynamic", way.get("regions") or model.experts,
                m.cycles, m.cycles * model.layers, m.cycles / dynamic.cycles, m.onchip["figures"], m.onchip["spec"],
                m.allocated, m.offchip_bytes, m.memory_utilisation))
            if (model.name, name) in PAPER:
                figure.claims.append(Claim(f"{model.name}: {name} over dynamic, cycles", PAPER[model.name, name],
                                           m.cycles / dynamic.cycles, "section 5.5",
                                           bar=0.10 if name == MEMORY else None))
        if model is QWEN:
            static = found[MEMORY]
            figure.claims += [
                Claim(f"{model.name}: on-chip memory saved over {MEMORY}", 0.69,
                      1 - dynamic.onchip["figures"] / static.onchip["figures"], "section 5.5"),
                Claim(f"{model.name}: compute saved", 0.54, 1 - dynamic.allocated / static.allocated, "section 5.5")]
    return figure


def _schedule(name: str) -> str:
    return "dynamic" if name == DYNAMIC else "queued"


def sketch(figure: Figure, axes: Sequence[Any]) -> None:
    """Cycles, memory and compute over dynamic, a panel a model."""
    names = list(dict.fromkeys(record["model"] for record in figure.records()))
    metrics = (("layer_cycles", "cycles"), ("onchip_bytes_figures", "on-chip memory"),
               ("allocated_flops_per_cycle", "compute"))
    colors = {MEMORY: COLORS["static"], PERFORMANCE: COLORS["other"], DYNAMIC: COLORS["dynamic"]}
    for axis, name in zip(axes, names):
        records = figure.select(model=name)
        base = records[-1]
        for k, r in enumerate(records):
            axis.bar([x + 0.27 * (k - 1) for x in range(len(metrics))], [r[m] / base[m] for m, _ in metrics], 0.27,
                     color=colors[r["implementation"]], label=r["implementation"])
        axis.set_xticks(range(len(metrics)), [label for _, label in metrics])
        axis.set(title=name, ylabel="over dynamic")
        axis.margins(y=0.3)
        axis.legend()
