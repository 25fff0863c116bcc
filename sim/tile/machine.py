"""The two machines that tile fidelity knows (see `sim.tile.cost`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from step_lang.hwconfig import HardwareConfig
from step_lang.memory_config import MemoryConfig
from step_lang.operator import Operator
from step_lang.timing import compute_timing
from step_lang.types import Tile

from .cost import BANDWIDTH, COMPUTE, CUT, INTERVAL, LATENCY, MEMORY_IN, MEMORY_OUT, TILE

__all__ = ["PAPER_MEMORY", "BeatMachine", "Machine", "RooflineMachine"]

PAPER_MEMORY = MemoryConfig(channels=32, burst_bytes=64, interval=2, latency=14, capacity_bytes=1 << 38)
"""The memory of the paper's experiments (WORKLOADS): 1024 B/cycle."""


class Machine:
    """What a program runs on.

    memory : off-chip; grain : bursts that a port is served in one go; live_buffers : buffers that a bufferize may have
    """

    memory: MemoryConfig
    live_buffers: int

    @property
    def grain(self) -> int:
        raise NotImplementedError

    def window(self, type_: Any) -> int:
        """Tiles that a load or store may have in flight."""
        raise NotImplementedError

    def capacity(self, type_: Any) -> int:
        """Tiles that a channel holds."""
        raise NotImplementedError

    def pack_cost(self, op: Operator | None, kind: str, cost: np.ndarray) -> None:
        """What the operator's actions cost."""
        raise NotImplementedError


@dataclass(frozen=True)
class RooflineMachine(Machine):
    """The paper's machine: its section 4.3, numbers of WORKLOADS.

    compute_bw : FLOPs/cycle of an operator that does not say; onchip_bandwidth : bytes/cycle of an on-chip memory;
    depth : tiles that a channel holds
    control_depth : selectors, references and scalars that one holds: they are made long before the tiles they steer
    """

    compute_bw: int = 1024
    onchip_bandwidth: int = 64
    depth: int = 2
    control_depth: int = 4096
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
        data = isinstance(type_, Tile) and (type_.rows, type_.cols) != (1, 1)
        return self.depth if data else self.control_depth

    def pack_cost(self, op: Operator | None, kind: str, cost: np.ndarray) -> None:
        cost[COMPUTE], cost[BANDWIDTH] = self.compute_bw, self.onchip_bandwidth
        if op is None:
            return
        if op.uses_compute and op.compute_bw is not None:
            cost[COMPUTE] = op.compute_bw
        for k, stream in enumerate(op.inputs[:2]):
            if stream.producer.kind == "streamify":
                cost[MEMORY_IN] |= 1 << k
        # The memory's own side of a transfer is charged to bufferize and streamify.
        cost[MEMORY_OUT] = 0


@dataclass(frozen=True)
class BeatMachine(Machine):
    """The hardware of ``hw``: tiles move in physical tiles of T x T."""

    hw: HardwareConfig = field(default_factory=HardwareConfig)

    @property
    def memory(self) -> MemoryConfig:  # type: ignore[override]
        return self.hw.memory

    @property
    def live_buffers(self) -> int:  # type: ignore[override]
        return self.hw.references

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

    def pack_cost(self, op: Operator | None, kind: str, cost: np.ndarray) -> None:
        cost[TILE], cost[INTERVAL], cost[CUT] = self.hw.tile, 1, 1
        cost[COMPUTE], cost[BANDWIDTH] = 1, 1
        if op is None or not op.uses_compute or op.kind == "flat_map":
            return
        t = self.hw.tile
        tiles = [_physical(stream.type, t) for stream in op.inputs]
        if not all(isinstance(tile, Tile) for tile in tiles):
            return
        rows = self.hw.rows_per_cycle or 1
        if op.compute_bw is not None and op.fn.name != "matmul":  # type: ignore[attr-defined]
            rows = min(t, max(1, op.compute_bw // t))
        timing = compute_timing("map" if op.kind == "map" else "accum", {
            "function": op.fn,  # type: ignore[attr-defined]
            "in_types": tiles, "out_type": _physical(op.output.type, t), "tile": t, "rows_per_cycle": rows,
            "k_per_cycle": self.hw.k_per_cycle})
        cost[INTERVAL], cost[LATENCY] = timing.interval, timing.latency


def _physical(type_: Any, t: int) -> Any:
    """The physical tile that a tile is made of."""
    if not isinstance(type_, Tile):
        return type_
    sizes = [min(t, size) if isinstance(size, int) else t for size in (type_.rows, type_.cols)]
    return Tile(sizes[0], sizes[1], type_.dtype)
