"""Figure 8: the model against the hardware, 15 tilings of a SwiGLU layer.

The hardware's cycles are those of beat fidelity, which is RTL's cycle for cycle on this layer (README), or those that
``step-hw validate examples/swiglu.py --sweep fig8`` recorded where its rows are given.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from step_lang.errors import RtlError
from step_lang.hwconfig import HardwareConfig
from step_lang.lowering import lower
from step_lang.mapping import build_unit_graph

from ..calibration import Comparison, summary
from ..prediction import predict as predict_beats
from ..tile import BeatMachine, Machine, RooflineMachine, predict
from .figure import Claim, Figure
from .lab import Lab
from .plot import COLORS
from .traces import Traces

__all__ = ["PANELS", "TITLE", "make", "points", "sketch"]

TITLE = "the model against the hardware, a SwiGLU layer in 15 tilings"
PANELS = 2
COLUMNS = ("tile_b", "tile_f", "hardware_cycles", "hardware", "tile_cycles", "tile_error", "roofline_cycles",
           "roofline_error", "offchip_bytes", "offchip_mb_4_bytes")
RECORDED = Path("build/validate_swiglu/rows.jsonl")
PAPER_MAPE, PAPER_WORST, PAPER_PEARSON = 0.061, 0.256, 0.99


def points() -> int:
    """Runs that `make` takes."""
    return len(_sizes())


def make(lab: Lab, traces: Traces, sizes: Sequence[Mapping[str, int]] | None = None, hw: HardwareConfig | None = None,
         recorded: Path = RECORDED) -> Figure:
    """The figure; other ``sizes`` and ``hw`` than the paper's are for tests. ``recorded``: rows of ``validate``."""
    hw = hw or HardwareConfig()
    known = _recorded(recorded) if sizes is None and hw == HardwareConfig() else {}
    figure = Figure(8, TITLE, COLUMNS, [], notes=[
        f"Hardware: {'RTL, as recorded in ' + str(recorded) if known else 'beat fidelity (RTL to the cycle)'}; T = "
        f"{hw.tile}, {hw.memory.peak_bytes_per_cycle:g} B/cycle.",
        "tile_cycles: tile fidelity on the same hardware. roofline_cycles: the rule of the paper's section 4.3, with "
        "the hardware's FLOPs/cycle, on-chip and off-chip bandwidth."])
    for size in sizes or _sizes():
        found = lab.keep(["figure 8", dict(size), hw.to_toml()], partial(_measure, size, hw))
        rtl = known.get((size["tile_b"], size["tile_f"]))
        if rtl is not None and rtl[1] != found["offchip_bytes"]:
            raise RtlError(f"{recorded}: {rtl[1]} B of traffic for {dict(size)} vs {found['offchip_bytes']} B",
                           fix="run 'step-hw validate examples/swiglu.py --sweep fig8' again, or remove the file")
        cycles = found["beat_cycles"] if rtl is None else rtl[0]
        figure.rows.append((size["tile_b"], size["tile_f"], cycles, "beat" if rtl is None else "RTL",
                            found["tile_cycles"], found["tile_cycles"] / cycles - 1, found["roofline_cycles"],
                            found["roofline_cycles"] / cycles - 1, found["offchip_bytes"],
                            found["offchip_bytes"] * 2 / 1e6))
    for name, what in (("tile_cycles", "tile fidelity"), ("roofline_cycles", "the roofline rule")):
        totals = summary([Comparison("", r["hardware_cycles"], r[name]) for r in figure.records()])
        bars = name == "tile_cycles"
        figure.claims += [
            Claim(f"Pearson of {what} and hardware", PAPER_PEARSON, totals["pearson"], "section 4.4",
                  at_least=bars),
            Claim(f"mean absolute error of {what}", PAPER_MAPE, totals["mape"], "read off the plot", at_most=bars),
            Claim(f"worst error of {what}", PAPER_WORST, totals["max_error"], "read off the plot", at_most=bars)]
    return figure


def sketch(figure: Figure, axes: Sequence[Any]) -> None:
    """Cycles of hardware and models, and off-chip traffic."""
    records = figure.records()
    x = range(len(records))
    names = [f"{r['tile_b']},{r['tile_f']}" for r in records]
    cycles, traffic = axes
    cycles.bar(x, [r["hardware_cycles"] for r in records], 0.7, color=COLORS["static"], label="hardware")
    cycles.plot(x, [r["tile_cycles"] for r in records], "o", color=COLORS["dynamic"], label="tile fidelity")
    cycles.plot(x, [r["roofline_cycles"] for r in records], "_", color="black", label="roofline rule")
    cycles.set_ylabel("cycles")
    cycles.margins(y=0.1)
    cycles.legend()
    traffic.bar(x, [r["offchip_mb_4_bytes"] for r in records], 0.7, color=COLORS["other"])
    traffic.set_ylabel("off-chip traffic (MB at 4 bytes an element)")
    for axis in axes:
        axis.set_xticks(list(x), names, rotation=60, ha="right")
        axis.set_xlabel("rows, intermediate columns of a tile")


def _sizes() -> list[dict[str, int]]:
    from examples.swiglu import SWEEPS

    return SWEEPS["fig8"]


def _measure(size: Mapping[str, Any], hw: HardwareConfig) -> dict[str, Any]:
    from examples import swiglu

    program = swiglu.build(**size)
    beats = predict_beats(build_unit_graph(lower(program, hw), hw), hw)
    t = hw.tile
    machines: dict[str, Machine] = {
        "tile_cycles": BeatMachine(hw),
        # A matrix unit does k_per_cycle products for each of its T x T outputs, a memory moves a tile a cycle.
        "roofline_cycles": RooflineMachine(compute_bw=2 * t * t * (hw.k_per_cycle or t), onchip_bandwidth=2 * t * t,
                                           memory=hw.memory)}
    found = {"beat_cycles": beats.cycles, "offchip_bytes": beats.offchip_bytes}
    for name, machine in machines.items():
        prediction = predict(program, machine)
        if not prediction.offchip_bytes == beats.offchip_bytes == int(prediction.costs.offchip_bytes):
            raise RtlError(f"off-chip traffic of {program.name} {dict(size)}: {prediction.offchip_bytes} B at tile "
                           f"fidelity, {beats.offchip_bytes} B at beat fidelity vs "
                           f"{prediction.costs.offchip_bytes} B by the symbolic expression")
        found[name] = prediction.cycles
    return found


def _recorded(path: Path) -> dict[tuple[int, int], tuple[int, int]]:
    """RTL cycles and traffic by (tile_b, tile_f); nothing where the file is missing, or no whole sweep."""
    try:
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        found = {(row["parameters"]["tile_b"], row["parameters"]["tile_f"]):
                 (int(row["rtl_cycles"]), row["offchip_read_bytes"] + row["offchip_write_bytes"]) for row in rows}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return found if set(found) == {(size["tile_b"], size["tile_f"]) for size in _sizes()} else {}
