"""What the model says of a program at tile fidelity: cycles, traffic, memory, utilisation."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from step_lang.errorcodes import fix_of
from step_lang.errors import DeadlockError, RtlError, UnknownFunction
from step_lang.interpreter import check_inputs, measure_symbols
from step_lang.metrics import DEFAULT_COMPUTE_BW, Metrics, metrics
from step_lang.program import Program
from step_lang.stream import Stream
from step_lang.tokens import Buffer, TokenStream, data_empty
from step_lang.types import BufferRef, Selector, Tile, Tuple

from . import memory as memory_words
from .capacity import check_capacity, check_units
from .engine import TileRun, run_tiles
from .graph import tile_graph
from .machine import BeatMachine, Machine, RooflineMachine
from .mistakes import disagreement
from .network import DONE, EMPTY, ERROR, ERROR_UNIT, GRANTED, RECORD_PEAK, TRACED
from .operators import UNKNOWN
from .waits import waiting_report

__all__ = ["TilePrediction", "predict", "traced_streams"]


@dataclass
class TilePrediction:
    """A run at tile fidelity.

    cycles : from the first off-chip read to the last off-chip write, both included
    total_cycles : until nothing happens any more
    offchip_read_bytes, offchip_write_bytes : as the memory served them; equal to ``costs``
    onchip_bytes : what SPEC section 5 says the program needs, for this run's sizes
    flops : of all operators, with the tiles' actual sizes
    compute_utilisation : FLOPs over what the operators that compute could have done in ``cycles``
    busy : cycles of work of each unit; peak_buffer_bytes : of each bufferize the most bytes that were live
    arbitration : grants of each operator that arbitrates
    symbols : measured sizes; costs : the program's metrics with them
    """

    cycles: int
    total_cycles: int
    offchip_read_bytes: int
    offchip_write_bytes: int
    onchip_bytes: int
    flops: int
    allocated_compute: int
    compute_utilisation: float
    memory_utilisation: float
    busy: dict[str, int]
    peak_buffer_bytes: dict[str, int]
    arbitration: dict[str, list[int]]
    symbols: dict[Any, int]
    costs: Metrics = field(repr=False)
    events: int
    wall_seconds: float
    run: TileRun = field(repr=False)

    @property
    def offchip_bytes(self) -> int:
        """Read and written bytes."""
        return self.offchip_read_bytes + self.offchip_write_bytes

    def as_json(self) -> dict[str, Any]:
        """The numbers, under the names of the command line's JSON."""
        names = ("cycles", "total_cycles", "offchip_read_bytes", "offchip_write_bytes", "onchip_bytes", "flops",
                 "allocated_compute", "compute_utilisation", "memory_utilisation", "busy", "peak_buffer_bytes",
                 "arbitration", "events", "wall_seconds")
        return {name: getattr(self, name) for name in names}


def predict(program: Program, machine: Machine | None = None,
            streams: Mapping[str, Any] | None = None, *, record: bool = False,
            progress: Callable[[int, int], None] | None = None) -> TilePrediction:
    """Run ``program`` (before lowering) at tile fidelity on ``machine`` (None: the paper's), with the values of its
    input streams. Tensors have no contents. ``record``: keep what happens when, in ``run.net`` (`sim.report`).
    ``progress`` is told the events and cycles so far, now and then.

    Raises `HardwareTooSmall` for tensors that its memory and buffers that its scratchpads do not hold, `DeadlockError`
    with the operators that wait for one another, `RtlError` where an operator would raise its error code,
    `UnknownFunction` where one is steered by a value that the model does not compute.
    """
    program.check()
    check_inputs(program, streams or {})
    machine = machine or RooflineMachine()
    check_capacity(program, machine.memory)
    if isinstance(machine, BeatMachine):
        check_units(program, machine.hw)
    began = time.perf_counter()
    graph = tile_graph(program, machine, streams)
    run = run_tiles(graph, record=record, progress=progress)
    net, heap = run.net, run.net.heap
    if net.misc[ERROR]:
        unit, code = int(net.misc[ERROR_UNIT]), int(net.misc[ERROR])
        operator = graph.operators[unit]
        if code == UNKNOWN:
            raise UnknownFunction("a value that steers it vs values that the model computes: input streams, selectors, "
                                  "integer scalars made of these", operator=operator,
                                  fix="run it on RTL (step-hw cosim), or steer it by an input stream")
        raise RtlError(disagreement(run, unit, code), operator=operator, fix=fix_of(code))
    unfinished = waiting_report(run)
    if unfinished:
        raise DeadlockError(unfinished)
    at = graph.memory.at
    first, last = int(heap[at + memory_words.FIRST_READ]), int(heap[at + memory_words.LAST_WRITE])
    total = int(max(net.free.max(), last + 1))
    cycles = last - max(first, 0) + 1 if last >= 0 else total
    tokens = traced_streams(run)
    symbols = measure_symbols(program, tokens)
    costs = metrics(program).substitute(symbols)
    # A size that no element had, as of tiles of a region whose experts have no tokens.
    costs = costs.substitute({symbol: 0 for symbol in costs.symbols if symbol != DEFAULT_COMPUTE_BW})
    computing = [u for u, op in enumerate(graph.operators) if op is not None and op.uses_compute and _computes(op)]
    allocated = int(sum(graph.cost[u, 0] for u in computing))
    flops = int(net.flops.sum())
    moved = int(heap[at + memory_words.READ_BYTES]), int(heap[at + memory_words.WRITE_BYTES])
    return TilePrediction(
        cycles=cycles,
        total_cycles=total,
        offchip_read_bytes=moved[0],
        offchip_write_bytes=moved[1],
        onchip_bytes=int(costs.onchip_bytes),
        flops=flops,
        allocated_compute=allocated,
        compute_utilisation=flops / (allocated * cycles) if allocated else 0.0,
        memory_utilisation=sum(moved) / max(1, graph.memory.config.most_bytes(cycles)),
        busy={name: int(net.busy[u]) for u, name in enumerate(graph.names)},
        peak_buffer_bytes={graph.names[u]: int(heap[record + RECORD_PEAK]) for u, record in graph.records.items()},
        arbitration={graph.names[u]: net.grants[:net.misc[GRANTED]][net.grants[:net.misc[GRANTED], 1] == u, 2].tolist()
                     for u, op in enumerate(graph.operators) if op is not None and op.arbitrates},
        symbols=symbols,
        costs=costs,
        events=int(net.misc[9]),
        wall_seconds=time.perf_counter() - began,
        run=run,
    )


def _computes(op: Any) -> bool:
    return op.kind != "flat_map" and op.flops() != 0


def traced_streams(run: TileRun) -> dict[str, TokenStream]:
    """Every stream's tokens, by name. Elements have sizes, no contents: arrays that take no memory."""
    net, program = run.net, run.graph.program
    trace = net.trace[:net.misc[TRACED]]
    order = np.argsort(trace[:, 0], kind="stable")
    trace = trace[order]
    bounds = np.searchsorted(trace[:, 0], np.arange(len(program.streams) + 1))
    made: dict[str, TokenStream] = {}
    for i, stream in enumerate(program.streams):
        rows = trace[bounds[i]:bounds[i + 1]]
        rows = rows[(rows[:, 1] & DONE) == 0]
        stop, empty = rows[:, 1] & 15, (rows[:, 1] & EMPTY) != 0
        made[stream.name] = TokenStream(stream.rank, stop, empty, _data(stream, stream.type, rows[~empty], made))
    return made


def _data(stream: Stream, type_: Any, rows: np.ndarray, tokens: Mapping[str, TokenStream]) -> Any:
    n = len(rows)
    if isinstance(type_, Tuple):
        ones = np.tile(np.array([[0, 0, 1, 1]]), (n, 1))
        return tuple(_data(stream, member, ones, tokens) for member in type_.members)
    if isinstance(type_, Selector):
        return np.broadcast_to(np.zeros((1, type_.n), dtype=bool), (n, type_.n))
    if isinstance(type_, BufferRef):
        return _buffers(stream, type_, tokens)
    assert isinstance(type_, Tile)
    if n == 0:
        return data_empty(type_)
    sizes = rows[:, 2:4]
    zero = np.zeros((1, 1, 1), dtype=type_.dtype.numpy)
    if (sizes == sizes[0]).all():
        return np.broadcast_to(zero, (n, int(sizes[0, 0]), int(sizes[0, 1])))
    return [np.broadcast_to(zero[0], (int(r), int(c))) for r, c in sizes.tolist()]


def _buffers(stream: Stream, type_: BufferRef, tokens: Mapping[str, TokenStream]) -> list[Buffer]:
    """The sizes of the buffers that a bufferize made; references that were routed are not looked into."""
    if stream.producer.kind != "bufferize":
        return []
    rank: int = stream.producer.rank  # type: ignore[attr-defined]
    filled = tokens[stream.producer.inputs[0].name]
    ends = np.flatnonzero(filled.stop >= rank)
    made = []
    for first, last in zip(np.concatenate([[0], ends[:-1] + 1]), ends):
        stop, empty = filled.stop[first:last + 1], filled.empty[first:last + 1]
        made.append(Buffer(stop[~empty], data_empty(type_.tile)))
    return made
