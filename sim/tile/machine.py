"""The two machines that tile fidelity knows (see `sim.tile.cost`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from step_lang.hwconfig import HardwareConfig
from step_lang.lowering import stream_orders
from step_lang.lowering.holds import find_holds
from step_lang.memory_config import MemoryConfig
from step_lang.operator import Operator
from step_lang.program import Program
from step_lang.stream import Stream
from step_lang.timing import compute_timing
from step_lang.types import Tile

from .cost import BANDWIDTH, BY_ROWS, COMPUTE, DELAY, INTERVAL, LATENCY, MEMORY_IN, NEEDS, TILE
from .lowered import FORK, Plan, by_rows, is_tiled, latency_behind, packed_by_rows, ways_in

__all__ = ["PAPER_MEMORY", "BeatMachine", "Machine", "RooflineMachine"]

PAPER_MEMORY = MemoryConfig(channels=32, burst_bytes=64, interval=2, latency=14, capacity_bytes=1 << 38)
"""The memory of the paper's experiments (WORKLOADS): 1024 B/cycle."""


class Machine(ABC):
    """What a program runs on.

    memory : off-chip; grain : bursts that a port is served in one go; live_buffers : buffers that a bufferize may have
    """

    memory: MemoryConfig
    live_buffers: int
    frames = 0
    """Physical tiles that a scratchpad holds; 0: any number."""
    has_elements = False
    """Whether the memory knows physical tiles (`element_order`)."""

    @property
    @abstractmethod
    def grain(self) -> int:
        """Bursts that a port is served in one go."""

    @abstractmethod
    def window(self, type_: Any) -> int:
        """Tiles that a load or store may have in flight."""

    @abstractmethod
    def capacity(self, type_: Any) -> int:
        """Tiles that a channel holds."""

    @abstractmethod
    def capacity_key(self, type_: Any) -> str:
        """The key of the machine's file or of the hardware configuration that says so."""

    def page_bytes(self, type_: Any) -> int:
        """Bytes of a page of a buffer of ``type_``; pages are given back one by one, 0 where all are at once."""
        return 0

    def plan(self, program: Program) -> Plan:
        """What lowering would decide."""
        return Plan()

    @abstractmethod
    def pack_cost(self, op: Operator | None, kind: str, plan: Plan, cost: np.ndarray) -> None:
        """What the operator's actions cost."""

    def element_order(self, stream: Stream, plan: Plan) -> tuple[int, int, int, bool] | None:
        """Bytes of a physical tile of ``stream``, how many lie down and across a tile, and whether they travel by
        columns; None where the memory knows bytes only."""
        return None


@dataclass(frozen=True)
class RooflineMachine(Machine):
    """The paper's machine: its section 4.3, numbers of WORKLOADS.

    compute_bw : FLOPs/cycle of an operator that does not say; onchip_bandwidth : bytes/cycle of an on-chip memory;
    depth : tiles that a channel holds
    control_depth : selectors, references and scalars that one holds: they are made long before the tiles they steer
    row_depth : single rows that one holds, 0 for ``depth``: rows that wait until others fill their tile
    load_buffers : a load's tiles lie in its on-chip buffer (SPEC section 5 counts it), from which their consumer reads
        them at ``onchip_bandwidth``, as those of a streamify; False: they come to it in no time
    """

    compute_bw: int = 1024
    onchip_bandwidth: int = 64
    depth: int = 2
    control_depth: int = 4096
    row_depth: int = 0
    load_buffers: bool = True
    live_buffers: int = 2
    in_flight: int = 2
    lines: int = 16
    memory: MemoryConfig = field(default=PAPER_MEMORY)

    @property
    def grain(self) -> int:
        return self.lines * self.memory.channels

    def window(self, type_: Any) -> int:
        return self.in_flight

    def capacity(self, type_: Any) -> int:
        if not isinstance(type_, Tile) or (type_.rows, type_.cols) == (1, 1):
            return self.control_depth
        return self.row_depth if self.row_depth and type_.rows == 1 else self.depth

    def capacity_key(self, type_: Any) -> str:
        if not isinstance(type_, Tile) or (type_.rows, type_.cols) == (1, 1):
            return "roofline.control_depth"
        return "roofline.row_depth" if self.row_depth and type_.rows == 1 else "roofline.depth"

    def pack_cost(self, op: Operator | None, kind: str, plan: Plan, cost: np.ndarray) -> None:
        cost[COMPUTE], cost[BANDWIDTH] = self.compute_bw, self.onchip_bandwidth
        if op is None:
            return
        if op.uses_compute and op.compute_bw is not None:
            cost[COMPUTE] = op.compute_bw
        memories = ("streamify", *(_LOADS if self.load_buffers else ()))
        for k, stream in enumerate(op.inputs[:2]):
            if _lies_in(memories, stream, set()):
                cost[MEMORY_IN] |= 1 << k


@dataclass(frozen=True)
class BeatMachine(Machine):
    """The hardware of ``hw``: tiles move in physical tiles of T x T."""

    hw: HardwareConfig = field(default_factory=HardwareConfig)
    has_elements = True

    @property
    def memory(self) -> MemoryConfig:  # type: ignore[override]
        return self.hw.memory

    @property
    def live_buffers(self) -> int:  # type: ignore[override]
        return self.hw.references

    @property
    def frames(self) -> int:  # type: ignore[override]
        return self.hw.scratchpad_frames

    def _beats(self, type_: Any) -> int:
        if not isinstance(type_, Tile) or not type_.is_static:
            return 1
        t = self.hw.tile
        return -(-int(type_.rows) // t) * -(-int(type_.cols) // t)

    @property
    def grain(self) -> int:
        return max(1, 2 * self.hw.tile**2 // self.memory.burst_bytes)

    def window(self, type_: Any) -> int:
        return max(2, self.hw.load_window // self._beats(type_))

    def capacity(self, type_: Any) -> int:
        return max(2, self.hw.link_depth // self._beats(type_))

    def capacity_key(self, type_: Any) -> str:
        return "link.depth"

    def page_bytes(self, type_: Any) -> int:
        return int(self.hw.page_frames * _physical(type_, self.hw.tile).nbytes)

    def plan(self, program: Program) -> Plan:
        return Plan(stream_orders(program), frozenset(find_holds(program)), packed_by_rows(program))

    def element_order(self, stream: Stream, plan: Plan) -> tuple[int, int, int, bool] | None:
        type_, t = stream.type, self.hw.tile
        if not isinstance(type_, Tile):
            return int(type_.nbytes), 1, 1, False
        rows, cols = (size if isinstance(size, int) else t for size in (type_.rows, type_.cols))
        by_columns = plan.orders.get(stream.name) == "col" and isinstance(type_.rows, int)
        nbytes = min(rows, t) * min(cols, t) * type_.dtype.bytes
        return int(nbytes), -(-rows // t), -(-cols // t), by_columns

    def pack_cost(self, op: Operator | None, kind: str, plan: Plan, cost: np.ndarray) -> None:
        cost[TILE], cost[INTERVAL] = self.hw.tile, 1
        cost[COMPUTE], cost[BANDWIDTH] = 1, 1
        if op is None:
            cost[LATENCY] = FORK if kind == "fork" else 0
            return
        for k, way in enumerate(ways_in(op, plan)):
            cost[NEEDS + k], cost[DELAY + k] = way.needs, way.delay
        cost[LATENCY] = LOAD_LATENCY if op.kind in _READS else latency_behind(op)
        if not op.uses_compute or op.kind == "flat_map":
            return
        name = op.fn.name  # type: ignore[attr-defined]
        cost[BY_ROWS] = by_rows(op, plan)
        if name in _MOVES:
            return
        t = self.hw.tile
        tiles = [_physical(stream.type, t) for stream in op.inputs]
        if not all(isinstance(tile, Tile) for tile in tiles):
            return
        rows = self.hw.rows_per_cycle or 1
        if op.compute_bw is not None and name != "matmul":
            rows = min(t, max(1, op.compute_bw // t))
        folds = op.kind != "map" or name == "matmul" or (name in ("row_sum", "row_max") and is_tiled(op.inputs[0].type))
        timing = compute_timing("accum" if folds else "map", {
            "function": op.fn,  # type: ignore[attr-defined]
            "in_types": tiles, "out_type": _physical(op.output.type, t), "tile": t, "rows_per_cycle": rows,
            "k_per_cycle": self.hw.k_per_cycle})
        cost[INTERVAL] = timing.interval
        cost[LATENCY] += timing.latency


LOAD_LATENCY = 2
"""Cycles from a burst's data to its tile at the output of a load: `step_lang.timing.load_timing`."""
_READS = ("input_stream", "linear_offchip_load", "random_offchip_load")

_MOVES = ("concat_rows", "concat_cols", "set_offset", "append_row", "last", "selector_index")
"""Functions that only move beats."""


_LOADS = ("linear_offchip_load", "random_offchip_load")
_PASSES_ON = ("eager_merge", "expand", "flatten", "partition", "promote", "reassemble", "repeat", "reshape")


def _lies_in(memories: tuple[str, ...], stream: Stream, seen: set[str]) -> bool:
    """Do tiles of ``stream`` lie in an on-chip memory of one of these kinds, only routed and reshaped since?"""
    if stream.name in seen or not isinstance(stream.type, Tile):
        return False
    seen.add(stream.name)
    op = stream.producer
    if op.kind in memories:
        return True
    if op.kind not in _PASSES_ON:
        return False
    # The first input of expand is its value; what steers a router is no tile.
    return any(_lies_in(memories, source, seen) for source in (op.inputs[:1] if op.kind == "expand" else op.inputs))


def _physical(type_: Any, t: int) -> Any:
    """The physical tile that a tile is made of."""
    if not isinstance(type_, Tile):
        return type_
    sizes = [min(t, size) if isinstance(size, int) else t for size in (type_.rows, type_.cols)]
    return Tile(sizes[0], sizes[1], type_.dtype)
