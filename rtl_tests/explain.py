"""Where do RTL and model part? Their beats side by side, link by link, and the units' state at the first difference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sim.engine import run_graph
from sim.network import STATUSES
from sim.prediction import Prediction
from sim.units import hbm
from step_hw.design import Design

from .cosim import PULSE, RtlRun, run_rtl

__all__ = ["PULSE", "Divergence", "Explanation", "explain", "model_start"]

CONTEXT = 4
"""Beats shown before and after the first difference."""


@dataclass(frozen=True)
class Divergence:
    """First beat of a link that moved in another cycle (or with another stop) in RTL than in the model.

    rtl_cycle, model_cycle : -1 where one side moved fewer beats; both count from start
    """

    link: str
    index: int
    beat: int
    rtl_cycle: int
    model_cycle: int

    @property
    def cycle(self) -> int:
        """The earlier of the two cycles."""
        return min(c for c in (self.rtl_cycle, self.model_cycle) if c >= 0)


@dataclass
class Explanation:
    """``divergences`` by cycle, the earliest first; ``text`` for people (empty list: the two agree beat for beat)."""

    divergences: list[Divergence]
    text: str


def explain(
    design: Design,
    run: RtlRun,
    prediction: Prediction,
    tensors: Mapping[str, np.ndarray],
    constants: Mapping[str, int] | None = None,
    simulator: str = "verilator",
) -> Explanation:
    """Line up every link's beats; ``prediction`` was made with ``trace=True``. Re-runs both sides up to the first
    difference to show the state of the units there (RTL on ``simulator``)."""
    trace = prediction.outcome.trace
    # Records count from the start pulse, the model from the cycle after it; and only the distance from the first read
    # is part of any number we state.
    shift = PULSE + run.start_cycle - model_start(design, prediction)
    trace = trace + np.array([shift, 0, 0])
    found = []
    for link in design.graph.links:
        rtl = run.native.of_link(link.index)
        model = trace[trace[:, 1] == link.index]
        found += _first_difference(link.name, link.index, rtl, model)
    found.sort(key=lambda d: (d.cycle, d.index))
    total = sum(len(run.native.of_link(link.index)) for link in design.graph.links)
    if not found:
        links = f"{len(design.graph.links)} link{'' if len(design.graph.links) == 1 else 's'}"
        return Explanation([], f"RTL and model agree: {total} beats on {links}, each in the same cycle")
    first = found[0]
    link = design.graph.links[first.index]
    lines = [
        f"RTL and model part on {len(found)} of {len(design.graph.links)} links; first on link '{first.link}', "
        f"beat {first.beat}: "
        f"{_when(first.rtl_cycle, 'RTL')}, {_when(first.model_cycle, 'model')}",
        "",
        f"{'beat':>8} {'RTL cycle':>10} {'model':>10}  stop",
    ]
    rtl, model = run.native.of_link(first.index), trace[trace[:, 1] == first.index]
    for i in range(max(0, first.beat - CONTEXT), first.beat + CONTEXT + 1):
        if i < max(len(rtl), len(model)):
            stop = rtl["stop"][i] if i < len(rtl) else int(model[i, 2]) & 15
            mark = " <-- first difference" if i == first.beat else ""
            lines.append(f"{i:>8} {_at(rtl['cycle'], i):>10} {_at(model[:, 0], i):>10}  {stop}{mark}")
    around = [i for end in (link.source, link.destination) if end for i in [end[0]]]
    lines += ["", f"units at the ends of that link, in cycle {first.cycle}:"]
    model_state = run_graph(design.graph, design.hw, dict(constants or {}), max_cycles=max(first.cycle - shift, 0))
    rtl_state = run_rtl_until(design, tensors, first.cycle, simulator)
    for i in around:
        unit = design.graph.units[i]
        status = STATUSES[int(model_state.last_status[i])]
        state = [int(v) for v in model_state.st[i, :12]]
        lines.append(
            f"  {unit.name} ({unit.kind}, {unit.origin}): RTL state {rtl_state[unit.name]:#x}; "
            f"model {status}, state {state}"
        )
    lines += ["", "links in order of their first difference:"]
    lines += [f"  cycle {d.cycle:>8}  {d.link} (beat {d.beat})" for d in found[:12]]
    return Explanation(found, "\n".join(lines))


def model_start(design: Design, prediction: Prediction) -> int:
    """Cycle of the model's first read burst (0 if it reads nothing)."""
    memory = next((unit.index for unit in design.graph.units if unit.kind == hbm.KIND), None)
    return 0 if memory is None else max(0, int(prediction.outcome.st[memory, hbm.FIRST_READ]) - 1)


def run_rtl_until(
    design: Design, tensors: Mapping[str, np.ndarray], cycle: int, simulator: str = "verilator"
) -> dict[str, int]:
    """State of every unit in ``cycle`` of an RTL run."""
    run = run_rtl(
        design,
        tensors,
        simulator=simulator,
        native=simulator == "verilator",
        max_cycles=max(cycle, 1),
        record=False,
        partial=True,
    )
    bits = run.native.unit_state
    return {name: bits >> offset & ((1 << width) - 1) for name, (offset, width) in design.verilog.state_offsets.items()}


def _first_difference(name: str, index: int, rtl: np.ndarray, model: np.ndarray) -> list[Divergence]:
    n = min(len(rtl), len(model))
    token = model[:n, 2]
    same = (
        (rtl["cycle"][:n] == model[:n, 0]) & (rtl["stop"][:n] == (token & 15)) & (rtl["flags"][:n] == (token >> 4 & 3))
    )
    if not same.all():
        i = int(np.argmin(same))
        return [Divergence(name, index, i, int(rtl["cycle"][i]), int(model[i, 0]))]
    if len(rtl) != len(model):
        return [
            Divergence(
                name, index, n, int(rtl["cycle"][n]) if len(rtl) > n else -1, int(model[n, 0]) if len(model) > n else -1
            )
        ]
    return []


def _when(cycle: int, who: str) -> str:
    return f"{who} moves it in cycle {cycle}" if cycle >= 0 else f"{who} never moves it"


def _at(cycles: np.ndarray, i: int) -> str:
    return str(int(cycles[i])) if i < len(cycles) else "-"
