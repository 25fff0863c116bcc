"""Beats, of RTL or of the model at beat fidelity, to a `Run`. Both record the same: every beat of every link as it is
written, and whatever is said of time here is made of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from step_lang.hwconfig import HardwareConfig
from step_lang.lowering import LoweredProgram
from step_lang.metrics import Metrics
from step_lang.roofline import peak_flops, roofline
from step_lang.timing import compute_timing
from step_lang.unitgraph import UnitGraph, UnitSpec

from ..network import DONE, EMPTY
from ..prediction import Prediction
from ..slices import bounded
from ..units import hbm
from .record import POINTS, SLICES, STATES, Curve, Link, Run, Unit, level_curve, operator_costs

__all__ = ["run_of_beats", "run_of_transfers"]

READERS = ("load", "input", "random_load")
WRITERS = ("store", "random_store")
FOLDS = ("accum", "bufferize", "pack_rows", *WRITERS)
"""Units that take more beats than they give: they work as beats come in, the others as beats go out."""
COMPUTES = ("map", "accum", "scan")
STORAGE = "scratchpad"
UNSEEN = ("hbm", STORAGE)
"""Units without links of their own."""


def run_of_beats(lowered: LoweredProgram, graph: UnitGraph, hw: HardwareConfig, costs: Metrics, symbols: Mapping,
                 prediction: Prediction) -> Run:
    """A prediction, made with ``trace=True``; ``costs``: the program's metrics with the run's sizes, ``symbols``."""
    outcome = prediction.outcome
    beats, notes = outcome.trace, []
    whole = int(outcome.pushed.sum())
    if len(beats) < whole:
        notes.append(f"The timeline holds the first {len(beats):,} of {whole:,} beats.")
    active = _activity(graph, beats)
    work = np.bincount(active[:, 0], active[:, 3], minlength=len(graph.units)).astype(int)
    states = []
    for unit in graph.units:
        counts = dict(prediction.stalls[unit.name])
        if unit.kind in COMPUTES and len(beats) == whole:
            # The model calls a unit busy while anything is in its pipeline; here it is while it takes something.
            only_passing = max(0, counts["busy"] - int(work[unit.index]))
            counts["busy"] -= only_passing
            counts["starved"] += only_passing
        states.append(counts)
    return _run(lowered, graph, hw, costs, symbols, "model, beat fidelity", beats, outcome.pushed, states,
                outcome.levels, prediction.peak_frames, prediction.cycles, _first(graph, prediction),
                prediction.total_cycles, (prediction.offchip_read_bytes, prediction.offchip_write_bytes), notes, active)


def run_of_transfers(lowered: LoweredProgram, graph: UnitGraph, hw: HardwareConfig, costs: Metrics, symbols: Mapping,
                     beats: np.ndarray, blocked: np.ndarray, numbers: Mapping[str, Any], simulator: str,
                     prediction: Prediction | None = None) -> Run:
    """A run on RTL: ``beats`` [n, 3] of (cycle, link, token), ``blocked``: cycles in which a beat waited for room in
    each link, ``numbers``: cycles, start_cycle, total_cycles, offchip_read_bytes, offchip_write_bytes, peak_frames.

    RTL does not tell how full scratchpads are over time; ``prediction``, made with ``trace=True``, does where all of
    its beats are RTL's.
    """
    notes = ["What units wait for is told by their links: blocked while a beat waits for room in one; waiting for the "
             "memory where a load has no beat; starved else, up to a unit's last beat."]
    levels = None
    if prediction is not None:
        shift = int(numbers["start_cycle"]) - _first(graph, prediction)
        theirs = prediction.outcome.trace + np.array([shift, 0, 0])
        same = len(theirs) == len(beats) and np.array_equal(_ordered(theirs)[:, :2], _ordered(beats)[:, :2])
        if same:
            levels = prediction.outcome.levels + np.array([shift, 0, 0])
    if levels is None and numbers["peak_frames"]:
        notes.append("RTL tells only how full scratchpads were at most: over time they are drawn where the model's "
                     "beats are all RTL's, which is not so here.")
    total = int(numbers["total_cycles"])
    pushed = np.bincount(beats[:, 1], minlength=len(graph.links))
    active = _activity(graph, beats)
    bounds = np.searchsorted(active[:, 0], np.arange(len(graph.units) + 1))
    states = [_states_of(unit, active[bounds[unit.index]:bounds[unit.index + 1]], blocked, total)
              for unit in graph.units]
    return _run(lowered, graph, hw, costs, symbols, f"RTL, {simulator}", beats, pushed, states, levels,
                numbers["peak_frames"], int(numbers["cycles"]), int(numbers["start_cycle"]), total,
                (int(numbers["offchip_read_bytes"]), int(numbers["offchip_write_bytes"])), notes, active)


def _first(graph: UnitGraph, prediction: Prediction) -> int:
    """Cycle of the first off-chip read."""
    memory = next((unit.index for unit in graph.units if unit.kind == hbm.KIND), None)
    return 0 if memory is None else max(0, int(prediction.outcome.st[memory, hbm.FIRST_READ]) - 1)


def _ordered(beats: np.ndarray) -> np.ndarray:
    return beats[np.lexsort((beats[:, 1], beats[:, 0]))]


def _run(lowered: LoweredProgram, graph: UnitGraph, hw: HardwareConfig, costs: Metrics, symbols: Mapping,
         simulator: str, beats: np.ndarray, pushed: np.ndarray, states: Sequence[Mapping[str, int]],
         levels: np.ndarray | None, peak_frames: Mapping[str, int], cycles: int, begin: int, total: int,
         traffic: tuple[int, int], notes: Sequence[str], active: np.ndarray) -> Run:
    program = lowered.logical
    physical = {op.name: op for op in lowered.program.operators}
    numbers = {unit.index: i for i, unit in enumerate(u for u in graph.units if u.kind not in UNSEEN)}
    elements = np.bincount(beats[(beats[:, 2] & EMPTY) == 0, 1], minlength=len(graph.links))
    units = []
    for unit in graph.units:
        if unit.index not in numbers:
            continue
        maker = physical.get(unit.origin.rsplit(" (", 1)[0])
        port = _data_port(unit)
        units.append(Unit(
            unit.name, unit.kind,
            "routing" if unit.kind == "fork" or maker is None else maker.category,
            lowered.owners.get(maker.name, "") if maker is not None else "",
            states[unit.index],
            int(max(elements[unit.outputs], default=0)) if unit.outputs and port is None else int(elements[port or 0]),
            int(elements[port]) * unit.params["element_bytes"] if port is not None else 0))
    links = [Link(link.name, numbers.get(link.source[0]) if link.source else None,
                  numbers.get(link.destination[0]) if link.destination else None, link.depth, int(pushed[link.index]))
             for link in graph.links]
    slices = active.copy()
    place = np.full(len(graph.units), -1)
    place[list(numbers)] = list(numbers.values())
    slices[:, 0] = place[active[:, 0]]
    slices, gap = bounded(slices, SLICES, 0)
    width = max(1, -(-total // POINTS))
    frame = {unit.index: -(-unit.params["payload"].data_bits // 8) for unit in graph.units if unit.kind == STORAGE}
    names = {unit.name: unit for unit in graph.units if unit.kind == STORAGE}
    curves = [
        Curve("off-chip read", "B/cycle", width, _bytes(graph, READERS, beats, width, total),
              hw.memory.peak_bytes_per_cycle),
        Curve("off-chip write", "B/cycle", width, _bytes(graph, WRITERS, beats, width, total),
              hw.memory.peak_bytes_per_cycle)]
    if levels is not None and names:
        curves.append(Curve("scratchpads", "B", width, _held(graph, levels, frame, width, total),
                            float(sum(u.params["frames"] * frame[u.index] for u in names.values()))))
    bound = roofline(program, hw, dict(symbols))
    peak = 0
    for op, row in zip(program.operators, costs.rows):
        if row.flops:
            peak += peak_flops(getattr(getattr(op, "fn", None), "name", ""), hw, op.compute_bw)
    return Run(
        program=program, simulator=simulator, machine=_machine(hw, graph), cycles=cycles, begin=begin,
        total_cycles=total, read_bytes=traffic[0], write_bytes=traffic[1], bandwidth=hw.memory.peak_bytes_per_cycle,
        most_bytes=hw.memory.most_bytes(cycles), flops=int(costs.flops), peak_flops=peak,
        memory_bound=bound.memory, compute_bound=bound.compute,
        busiest=bound.busiest, onchip_required=int(costs.onchip_bytes),
        onchip_peak={name: (n * frame[names[name].index], names[name].params["frames"] * frame[names[name].index])
                     for name, n in peak_frames.items()},
        costs=operator_costs(costs), units=units, links=links, slices=slices, gap=gap, curves=curves,
        knobs={"compute": "tile.k_per_cycle or tile.rows_per_cycle", "depth": "link.depth", "window": "load.window",
               "latency": "memory.latency", "bandwidth": "memory.channels", "buffers": "scratchpad.frames",
               "references": "scratchpad.references", "size_fifos": "step-hw size-fifos"},
        notes=[*notes, *_merged_note(gap)])


def _merged_note(gap: int) -> list[str]:
    return [f"Work less than {gap + 1:,} cycles apart is drawn as one slice."] if gap > 0 else []


def _machine(hw: HardwareConfig, graph: UnitGraph) -> list[tuple[str, str]]:
    memory = hw.memory
    return [("T", str(hw.tile)), ("units / links", f"{len(graph.units)} / {len(graph.links)}"),
            ("memory", f"{memory.model}, {memory.channels} channels, {memory.peak_bytes_per_cycle:g} B/cycle"),
            ("links", f"{hw.link_depth} beats" + (f", {len(hw.link_depths)} of other depth" if hw.link_depths else ""))]


def _data_port(unit: UnitSpec) -> int | None:
    """The link that carries what a unit moves to or from memory."""
    if unit.kind in READERS:
        return unit.outputs[0]
    return unit.inputs[-1] if unit.kind in WRITERS else None


def _activity(graph: UnitGraph, beats: np.ndarray) -> np.ndarray:
    """int64 [n, 4] of (unit, begin, end, work): each beat's work, by unit and begin."""
    parts = []
    order = np.argsort(beats[:, 1], kind="stable")
    bounds = np.searchsorted(beats[order, 1], np.arange(len(graph.links) + 1))
    for unit in graph.units:
        if unit.kind in UNSEEN:
            continue
        interval = compute_timing(unit.kind, unit.params).interval if unit.kind in COMPUTES else 1
        folds = unit.kind in FOLDS
        links = unit.inputs if folds else unit.outputs
        rows = np.concatenate([beats[order[bounds[k]:bounds[k + 1]]] for k in links])
        if not len(rows):
            continue
        if folds:   # a beat written in cycle t can be read in t + 1; where several inputs are read, with the last
            rows = rows[rows[:, 1] == max(links, key=lambda k: rows[rows[:, 1] == k, 0].sum())]
        length = np.where(rows[:, 2] & (EMPTY | DONE), 1, interval)
        begin = rows[:, 0] + 1 if folds else rows[:, 0] + 1 - length
        begin, kept = np.unique(np.maximum(begin, 0), return_index=True)
        length = length[kept]
        # Work overlaps where a beat waited in its link: it is done one after the other.
        parts.append(np.stack([np.full(len(begin), unit.index), begin, begin + length, length], axis=1))
    return np.concatenate(parts) if parts else np.zeros((0, 4), dtype=np.int64)


def _states_of(unit: UnitSpec, active: np.ndarray, blocked: np.ndarray, total: int) -> dict[str, int]:
    """Cycles of a unit in each state, as its links tell."""
    busy = min(total, int(active[:, 3].sum()))
    last = min(total, int(active[:, 2].max())) if len(active) else 0
    wait = int(max(blocked[unit.outputs], default=0)) if unit.outputs else 0
    memory = 0
    if unit.kind in WRITERS:
        memory = int(max(blocked[unit.inputs], default=0))
    elif unit.kind == "bufferize":
        wait = max(wait, int(max(blocked[unit.inputs], default=0)))
    wait = min(wait, total - busy)
    memory = min(memory, total - busy - wait)
    rest = max(0, last - busy - wait - memory)
    if unit.kind in READERS:
        memory, rest = memory + rest, 0
    made = dict(zip(STATES, (busy, rest, wait, memory, 0)))
    return made | {"idle": total - sum(made.values())}


def _bytes(graph: UnitGraph, kinds: Sequence[str], beats: np.ndarray, width: int, total: int) -> np.ndarray:
    """Bytes/cycle over time of the units of these kinds, as elements pass their links."""
    size = np.zeros(len(graph.links), dtype=np.int64)
    for unit in graph.units:
        if unit.kind in kinds:
            size[_data_port(unit)] = unit.params["element_bytes"]
    rows = beats[(size[beats[:, 1]] > 0) & ((beats[:, 2] & EMPTY) == 0)]
    return np.bincount(rows[:, 0] // width, size[rows[:, 1]], minlength=-(-total // width)) / width


def _held(graph: UnitGraph, levels: np.ndarray, frame: Mapping[int, int], width: int, total: int) -> np.ndarray:
    """The most bytes that all scratchpads hold, whole pages, over time."""
    page = {index: graph.units[index].params["page_frames"] * nbytes for index, nbytes in frame.items()}
    now = dict.fromkeys(page, 0)
    change = np.zeros(len(levels), dtype=np.int64)
    for index in page:
        own = np.flatnonzero(levels[:, 1] == index)
        change[own] = np.diff(levels[own, 2] * page[index], prepend=now[index])
    times, at = np.unique(levels[:, 0], return_index=True)
    sums = np.add.reduceat(change, at) if len(at) else change
    return level_curve(times, np.cumsum(sums), width, -(-total // width))
