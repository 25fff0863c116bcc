"""A prediction at tile fidelity to a `Run`."""

from __future__ import annotations

import numpy as np

from step_lang.hwconfig import HardwareConfig
from step_lang.operator import Operator
from step_lang.roofline import peak_flops

from ..slices import bounded
from ..tile.machine import BeatMachine, RooflineMachine
from ..tile.memory import FIRST_READ
from ..tile.network import (
    BLOCKED,
    BUFFERED,
    CAPACITY,
    GAP,
    MOST_BUFFERED,
    OTHER,
    PUSHED,
    READ,
    SLICED,
    STARVED,
    WIDTH,
    WRITTEN,
)
from ..tile.prediction import TilePrediction
from .record import POINTS, SLICES, STATES, Curve, Link, Run, Unit, operator_costs

__all__ = ["run_of_tiles"]

LOADS = ("linear_offchip_load", "random_offchip_load", "input_stream")
STORES = ("linear_offchip_store", "random_offchip_store")


def run_of_tiles(prediction: TilePrediction) -> Run:
    """A prediction of `sim.tile.predict`, made with ``record=True``."""
    graph, net = prediction.run.graph, prediction.run.net
    machine, program, costs = graph.machine, graph.program, prediction.costs
    total = prediction.total_cycles
    slices = net.slices[:net.misc[SLICED]]
    last = np.zeros(len(graph.kinds), dtype=np.int64)
    np.maximum.at(last, slices[:, 0], slices[:, 2])
    moved = np.zeros(len(graph.kinds), dtype=np.int64)
    for ports in (graph.ins, graph.outs):   # what a unit gives counts, where it gives anything
        used = ports >= 0
        most = np.where(used, net.channels[np.maximum(ports, 0), PUSHED], 0).max(axis=1)
        moved = np.where(used.any(axis=1), most, moved)
    bytes_of = {row.name: int(row.offchip_read_bytes + row.offchip_write_bytes) for row in costs.rows}
    numbers: dict[int, int] = {}
    units: list[Unit] = []
    for u, (kind, name, op) in enumerate(zip(graph.kinds, graph.names, graph.operators)):
        if kind in ("hbm", "drain"):
            continue
        numbers[u] = len(units)
        units.append(Unit(name, kind, op.category if op is not None else "routing", op.name if op is not None else "",
                          _states(kind, int(net.busy[u]), net.stalls[u], int(last[u]), total), int(moved[u]),
                          bytes_of[name] if op is not None else 0))
    links = [Link(f"{stream.name}#{c}" if len(stream.consumers) > 1 else stream.name, numbers.get(int(source)),
                  numbers.get(int(sink)), int(net.channels[c, CAPACITY]), int(net.channels[c, PUSHED]))
             for c, (stream, (source, sink)) in enumerate(zip(graph.channels, graph.ends))]
    kept = slices[np.isin(slices[:, 0], list(numbers))].copy()
    kept[:, 0] = [numbers[u] for u in kept[:, 0].tolist()]
    kept, gap = bounded(kept, SLICES, int(net.misc[GAP]))
    peaks = {op: _peak_of(prediction, op) for op in graph.operators if op is not None and op.uses_compute}
    flops = {row.name: int(row.flops) for row in costs.rows}
    compute_bound, busiest = max([(flops[op.name] / peak, op.name) for op, peak in peaks.items() if flops[op.name]],
                                 default=(0.0, "-"))
    memory = machine.memory
    notes = ["Units are operators; a tile is handed over whole, and only what steers others has values."
             if isinstance(machine, RooflineMachine) else "Units are operators."]
    if gap >= 0:
        notes.append(f"Work at most {gap:,} cycles apart is drawn as one slice.")
    hardware = isinstance(machine, BeatMachine)
    return Run(
        program=program, simulator="model, tile fidelity", machine=_machine(prediction), cycles=prediction.cycles,
        begin=max(0, int(net.heap[graph.memory.at + FIRST_READ])), total_cycles=total,
        read_bytes=prediction.offchip_read_bytes, write_bytes=prediction.offchip_write_bytes,
        bandwidth=memory.peak_bytes_per_cycle, flops=int(costs.flops),
        peak_flops=sum(peak for op, peak in peaks.items() if flops[op.name]),
        most_bytes=memory.most_bytes(prediction.cycles),
        memory_bound=memory.least_cycles(prediction.offchip_bytes), compute_bound=compute_bound,
        busiest=busiest, onchip_required=prediction.onchip_bytes,
        onchip_peak={name: (n, None) for name, n in prediction.peak_buffer_bytes.items()},
        costs=operator_costs(costs), units=units, links=links, slices=kept, gap=gap,
        curves=_curves(prediction, total),
        knobs={"compute": "tile.k_per_cycle or tile.rows_per_cycle" if hardware else "the operator's compute_bw",
               "depth": "link.depth" if hardware else "the machine's depth",
               "window": "load.window" if hardware else "the machine's in_flight", "latency": "memory.latency",
               "bandwidth": "memory.channels", "buffers": "scratchpad.frames" if hardware else "",
               "references": "scratchpad.references" if hardware else "the machine's live_buffers",
               "size_fifos": "step-hw size-fifos" if hardware else ""},
        notes=notes)


def _states(kind: str, busy: int, stalls: np.ndarray, last: int, total: int) -> dict[str, int]:
    busy = min(busy, total)
    starved = min(int(stalls[STARVED]), total - busy)
    blocked = min(int(stalls[BLOCKED]), total - busy - starved)
    memory, other = 0, min(int(stalls[OTHER]), total - busy - starved - blocked)
    if kind in LOADS:   # it sleeps while it gives a tile, too
        memory, other = max(0, last - busy - starved - blocked), 0
    elif kind in STORES:
        memory, other = other, 0
    made = dict(zip(STATES, (busy, starved, blocked + other, memory, 0)))
    return made | {"idle": total - sum(made.values())}


def _peak_of(prediction: TilePrediction, op: Operator) -> int:
    """FLOPs/cycle of an operator."""
    graph = prediction.run.graph
    if isinstance(graph.machine, BeatMachine):
        return peak_flops(getattr(getattr(op, "fn", None), "name", ""), graph.machine.hw, op.compute_bw)
    return graph.machine.compute_bw if op.compute_bw is None else op.compute_bw  # type: ignore[attr-defined]


def _machine(prediction: TilePrediction) -> list[tuple[str, str]]:
    machine = prediction.run.graph.machine
    memory = machine.memory
    rows = [("memory", f"{memory.model}, {memory.channels} channels, {memory.peak_bytes_per_cycle:g} B/cycle")]
    if isinstance(machine, BeatMachine):
        hw: HardwareConfig = machine.hw
        return [("T", str(hw.tile)), *rows, ("links", f"{hw.link_depth} beats")]
    assert isinstance(machine, RooflineMachine)
    return [("machine", "the paper's roofline rule"), *rows,
            ("on-chip memories", f"{machine.onchip_bandwidth} B/cycle each"),
            ("operators", f"{machine.compute_bw} FLOPs/cycle where they do not say")]


def _curves(prediction: TilePrediction, total: int) -> list[Curve]:
    net = prediction.run.net
    memory = prediction.run.graph.machine.memory
    buckets = -(-total // int(net.misc[WIDTH]))
    fold = max(1, -(-buckets // POINTS))
    width = int(net.misc[WIDTH]) * fold
    points = -(-total // width)

    def folded(row: int, empty: int) -> np.ndarray:
        values = np.full(points * fold, empty, dtype=np.int64)
        n = min(len(values), net.curves.shape[1])
        values[:n] = net.curves[row, :n]
        return values.reshape(points, fold)

    most, after = folded(MOST_BUFFERED, -1), folded(BUFFERED, -1)
    held, now = np.zeros(points, dtype=np.int64), 0
    for i in range(points):
        held[i] = max(now, int(most[i].max()))
        known = after[i][after[i] >= 0]
        now = int(known[-1]) if len(known) else now
    peak = memory.peak_bytes_per_cycle
    return [Curve("off-chip read", "B/cycle", width, folded(READ, 0).sum(axis=1) / width, peak),
            Curve("off-chip write", "B/cycle", width, folded(WRITTEN, 0).sum(axis=1) / width, peak),
            Curve("on-chip buffers", "B", width, held)]
