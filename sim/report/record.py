"""What is known of a run, whoever ran it: RTL, or the model at either fidelity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from step_lang.metrics import Metrics
from step_lang.program import Program

__all__ = ["POINTS", "SLICES", "STATES", "Curve", "Link", "OperatorCost", "Run", "Unit", "level_curve",
           "operator_costs"]

STATES = ("busy", "starved", "blocked", "memory", "idle")
"""What a unit does in a cycle: works, waits for input, for room at an output, for the memory, or is not in use."""

POINTS = 480
"""Points of a curve, at most."""

SLICES = 50_000
"""Slices of work that a record keeps, at most, or one for each unit."""


@dataclass(frozen=True)
class Unit:
    """A unit of the simulated machine: a hardware unit, or an operator at tile fidelity.

    kind, category : of the unit, and ``memory``, ``compute``, ``routing`` or ``shape``
    operator : the program's operator for which it works, "" for none
    states : cycles in each of `STATES`; their sum is the run's ``total_cycles``
    moved : elements that left it, or that it stored
    offchip_bytes : that it moved to or from memory
    """

    name: str
    kind: str
    category: str
    operator: str
    states: Mapping[str, int]
    moved: int
    offchip_bytes: int = 0

    def share(self, state: str) -> float:
        """Share of the cycles in a state."""
        return self.states[state] / max(1, sum(self.states.values()))


@dataclass(frozen=True)
class Link:
    """What joins two units: numbers of both (None: nobody's), how many elements it holds and how many it moved."""

    name: str
    source: int | None
    destination: int | None
    depth: int
    moved: int


@dataclass(frozen=True)
class OperatorCost:
    """What an operator of the program costs on paper, at the run's sizes."""

    name: str
    flops: int
    offchip_bytes: int
    onchip_bytes: int


@dataclass(frozen=True)
class Curve:
    """A quantity over time: ``values[i]`` from cycle ``i * width`` on; ``limit``: what it cannot exceed (None:
    nothing).

    unit : ``B/cycle`` (means) or ``B`` (most)
    """

    name: str
    unit: str
    width: int
    values: np.ndarray
    limit: float | None = None


@dataclass
class Run:
    """A run.

    simulator, machine : who ran it, on what: for people
    cycles : from the first off-chip read, in cycle ``begin``, to the last off-chip write; total_cycles : all of them
    read_bytes, write_bytes : off-chip; bandwidth : bytes/cycle that the memory can move; most_bytes : the most that it
        can move in ``cycles``
    flops : of the program; peak_flops : FLOPs/cycle of everything that computes
    memory_bound, compute_bound : cycles that the traffic takes at the bandwidth, and ``busiest``, the operator whose
        FLOPs take longest, takes at its compute bandwidth
    onchip_required : bytes, as SPEC section 5 counts them; onchip_peak : buffer name to (most bytes held, bytes it
        can hold or None)
    costs : of each operator of ``program``
    units, links : links name units by their place in ``units``
    slices : int64 [n, 4] of (unit, begin, end, work), by unit and begin; ``gap``: cycles that slices merged into one
        may lie apart, -1 where none were merged
    knobs : names of the settings that the machine has, of those that ``findings`` speaks of
    notes : what this record cannot tell
    """

    program: Program
    simulator: str
    machine: Sequence[tuple[str, str]]
    cycles: int
    begin: int
    total_cycles: int
    read_bytes: int
    write_bytes: int
    bandwidth: float
    most_bytes: int
    flops: int
    peak_flops: int
    memory_bound: float
    compute_bound: float
    busiest: str
    onchip_required: int
    onchip_peak: Mapping[str, tuple[int, int | None]]
    costs: Sequence[OperatorCost]
    units: Sequence[Unit]
    links: Sequence[Link]
    slices: np.ndarray
    gap: int
    curves: Sequence[Curve]
    knobs: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()

    @property
    def offchip_bytes(self) -> int:
        """Read and written bytes."""
        return self.read_bytes + self.write_bytes

    @property
    def bound(self) -> float:
        """Cycles that no schedule can be below."""
        return max(self.memory_bound, self.compute_bound)

    @property
    def memory_share(self) -> float:
        """Bytes moved over those that the memory could have moved."""
        return self.offchip_bytes / max(1, self.most_bytes)

    @property
    def compute_share(self) -> float:
        """FLOPs over those that everything that computes could have done."""
        return self.flops / (self.peak_flops * max(1, self.cycles)) if self.peak_flops else 0.0

    def busy_of_operators(self) -> dict[str, float]:
        """Of each operator of the program the share of cycles in which its busiest unit works; of its own sort, where
        it has such units: what brings data to a product is not the product."""
        category = {op.name: op.category for op in self.program.operators}
        busy: dict[str, tuple[bool, float]] = {}
        for unit in self.units:
            if unit.operator:
                found = unit.category == category[unit.operator] and unit.kind != "fork", unit.share("busy")
                busy[unit.operator] = max(busy.get(unit.operator, found), found)
        return {name: share for name, (_, share) in busy.items()}


def operator_costs(costs: Metrics) -> list[OperatorCost]:
    """The rows of a program's metrics, all symbols substituted."""
    return [OperatorCost(row.name, int(row.flops), int(row.offchip_read_bytes + row.offchip_write_bytes),
                         int(row.onchip_bytes)) for row in costs.rows]


def level_curve(times: np.ndarray, levels: np.ndarray, width: int, points: int) -> np.ndarray:
    """The most of a level in each bucket of ``width`` cycles; it is ``levels[i]`` from ``times[i]`` (ascending) on, 0
    before."""
    made = np.zeros(points, dtype=np.int64)
    edges = np.searchsorted(times, np.arange(points) * width, side="left")   # changes before each bucket
    held = np.concatenate([[0], levels])[edges]
    np.maximum(made, held, out=made)
    inside = times // width < points
    np.maximum.at(made, times[inside] // width, levels[inside])
    return made
