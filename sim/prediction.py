"""What the model says of a program on a hardware configuration: cycles, traffic, peaks, utilisation and stalls."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from step_lang.deadlock import deadlock_report
from step_lang.errors import DeadlockError, ShapeMismatch
from step_lang.exhaustion import exhausted_scratchpads, unit_error
from step_lang.hwconfig import HardwareConfig
from step_lang.unitgraph import UnitGraph

from .dispatch import unit_modules
from .engine import RunOutcome, run_graph
from .network import COUNT, STATUSES
from .steering import check_steering
from .units import bufferize, hbm, scratchpad

__all__ = ["Prediction", "predict", "warm_up"]


@dataclass
class Prediction:
    """A modelled run.

    cycles : from the first off-chip read to the last off-chip write, both included
    total_cycles : from start to the end of the last unit
    offchip_read_bytes, offchip_write_bytes : as the memory served them
    stalls : unit name to cycles in each of ``sim.network.STATUSES``
    beats : link name to beats moved
    peak_frames : scratchpad name to the most frames in use
    utilisation : unit name to its share of busy cycles, for units that compute
    arbitration : grants of each operator that arbitrates, by its name (`step_lang.arbitration`)
    wall_seconds : the model's own time
    outcome : the raw run, with the trace of every beat if it was asked for
    """

    cycles: int
    total_cycles: int
    offchip_read_bytes: int
    offchip_write_bytes: int
    stalls: dict[str, dict[str, int]]
    beats: dict[str, int]
    peak_frames: dict[str, int]
    utilisation: dict[str, float]
    arbitration: dict[str, list[int]]
    wall_seconds: float
    outcome: RunOutcome = field(repr=False)

    @property
    def offchip_bytes(self) -> int:
        """Read and written bytes."""
        return self.offchip_read_bytes + self.offchip_write_bytes

    def as_json(self) -> dict[str, Any]:
        """The numbers, under the names of the command line's JSON."""
        return {
            "cycles": self.cycles,
            "total_cycles": self.total_cycles,
            "offchip_read_bytes": self.offchip_read_bytes,
            "offchip_write_bytes": self.offchip_write_bytes,
            "peak_frames": self.peak_frames,
            "utilisation": self.utilisation,
            "stalls": self.stalls,
            "beats": self.beats,
            "arbitration": self.arbitration,
            "wall_seconds": self.wall_seconds,
        }


def predict(
    graph: UnitGraph,
    hw: HardwareConfig,
    calibration: Mapping[str, int] | None = None,
    *,
    trace: bool = False,
    max_cycles: int = 1_000_000_000,
) -> Prediction:
    """Run the model at beat fidelity.

    ``calibration`` maps constant names (``sim.memory.CALIBRATION``) to values. Raises `DeadlockError` with the cycle
    of links that wait for one another, `RtlError` for a unit that would raise its error code, and `UnknownFunction` for
    a program that is steered by values which the model does not compute (`sim.steering`); `ShapeMismatch` for a stream
    with other numbers of elements than its static shape says.
    """
    check_steering(graph)
    began = time.perf_counter()
    outcome = run_graph(
        graph, hw, dict(calibration or {}), trace=trace, max_cycles=max_cycles, trace_size=16_000_000 if trace else 0
    )
    wall = time.perf_counter() - began
    filled, waits = (
        {unit.index: int(outcome.st[unit.index, field]) for unit in graph.units if unit.kind == bufferize.KIND}
        for field in (bufferize.COUNT, bufferize.WAITS)
    )
    if outcome.reason == "deadlock":
        levels = outcome.net.links[:, COUNT]  # type: ignore[attr-defined]
        raise DeadlockError(deadlock_report(graph, levels, exhausted_scratchpads(graph, filled, waits)))
    if outcome.reason == "error":
        unit = graph.units[int(outcome.net.misc[3]) - 1]  # type: ignore[attr-defined]
        code = int(outcome.net.misc[4])  # type: ignore[attr-defined]
        raise unit_error(graph, unit, code, f"raises {{}} in cycle {outcome.cycles - 1}", filled)
    if outcome.reason == "max_cycles":
        raise DeadlockError(f"the model stopped after {max_cycles} cycles, before the program ended")
    _check_counts(graph, outcome)
    memory = next((unit for unit in graph.units if unit.kind == hbm.KIND), None)
    numbers = outcome.st[memory.index] if memory is not None else np.zeros(64, dtype=np.int64)
    modules = unit_modules()
    first, last = int(numbers[hbm.FIRST_READ]), int(numbers[hbm.LAST_WRITE])
    return Prediction(
        cycles=last - max(first, 1) + 1 if last else outcome.cycles,
        total_cycles=outcome.cycles,
        offchip_read_bytes=int(numbers[hbm.READ_BYTES]),
        offchip_write_bytes=int(numbers[hbm.WRITE_BYTES]),
        stalls={
            unit.name: {name: int(n) for name, n in zip(STATUSES, outcome.stat[unit.index])} for unit in graph.units
        },
        beats={link.name: int(outcome.pushed[link.index]) for link in graph.links},
        peak_frames={
            unit.name: int(outcome.st[unit.index, scratchpad.ST_PEAK_FRAMES])
            for unit in graph.units
            if unit.kind == scratchpad.KIND
        },
        utilisation={
            unit.name: round(float(outcome.stat[unit.index, 1]) / max(outcome.cycles, 1), 6)
            for unit in graph.units
            if unit.kind in ("map", "accum", "scan")
        },
        arbitration={
            unit.name: outcome.grants[outcome.grants[:, 1] == unit.index, 2].tolist()
            for unit in graph.units
            if getattr(modules[unit.kind], "ARBITRATES", False)
        },
        wall_seconds=wall,
        outcome=outcome,
    )


def _check_counts(graph: UnitGraph, outcome: RunOutcome) -> None:
    """What the program's author assumes of a shape may be wrong."""
    unfinished = graph.links_to_reassembles()
    for link in graph.links:
        if link.elements is None or link.source is None:
            continue
        found, source = int(outcome.pushed[link.index]) - 1, graph.units[link.source[0]]
        if found > link.elements or (found < link.elements and link.index not in unfinished):
            raise ShapeMismatch(f"unit '{source.name}' ({source.origin}): stream '{link.stream}': {found} elements in "
                                f"the model vs {link.elements} by its shape",
                                fix="assume no more of the shape than holds")


def warm_up(graph: UnitGraph | None = None) -> float:
    """Compile the engine for ``graph`` (default: for units of every kind), or load it compiled, so that the next run
    takes its own time only; seconds it took."""
    began = time.perf_counter()
    run_graph(graph or UnitGraph([], []), HardwareConfig(), max_cycles=1)
    return time.perf_counter() - began
