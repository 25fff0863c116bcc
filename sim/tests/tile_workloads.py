"""Scaled-down workloads on which tile fidelity is compared with beat fidelity. The constants of tile fidelity were
chosen looking at others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from examples import attention, matmul, moe, ragged_softmax, simplified_moe, softmax, swiglu
from sim.prediction import predict
from sim.tile import BeatMachine
from sim.tile import predict as predict_tiles
from step_hw.design import Design
from step_lang.hwconfig import HardwareConfig
from step_lang.memory_config import MemoryConfig

__all__ = ["WORKLOADS", "Compared", "Workload", "compare"]

_MEMORIES = {
    "narrow": MemoryConfig(channels=2, interval=3, latency=20, capacity_bytes=1 << 26),
    "usual": MemoryConfig(channels=8, interval=2, latency=24, capacity_bytes=1 << 26),
    "wide": MemoryConfig(channels=16, burst_bytes=128, interval=2, latency=40, capacity_bytes=1 << 26),
    "banked": MemoryConfig(model="banked", channels=4, capacity_bytes=1 << 26),
}


@dataclass(frozen=True)
class Workload:
    """A program on a hardware."""

    name: str
    module: ModuleType
    tile: int
    memory: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0

    @property
    def hw(self) -> HardwareConfig:
        return HardwareConfig(tile=self.tile, memory=_MEMORIES[self.memory], link_depth=256, scratchpad_frames=4096,
                              accumulator_entries=1024)


@dataclass(frozen=True)
class Compared:
    """Cycles of a workload at both fidelities."""

    name: str
    beat: int
    tile: int

    @property
    def error(self) -> float:
        """Relative, signed."""
        return (self.tile - self.beat) / self.beat


_MOE = {"batch": 40, "experts": 4, "top_k": 2, "hidden": 64, "intermediate": 192}
_ATTENTION = {"batch": 10, "regions": 2, "capacity": 384}

WORKLOADS = (
    Workload("matmul, T 8", matmul, 8, "usual"),
    Workload("matmul, T 16", matmul, 16, "wide"),
    Workload("softmax", softmax, 8, "narrow"),
    Workload("ragged softmax", ragged_softmax, 4, "narrow"),
    Workload("simplified MoE, T 4", simplified_moe, 4, "narrow"),
    Workload("simplified MoE, T 4, wide", simplified_moe, 4, "usual"),
    *(Workload(f"SwiGLU {tile_b} x {tile_f}, T {tile}", swiglu, tile, memory,
               {"batch": 64, "hidden": 64, "intermediate": 192, "tile_b": tile_b, "tile_f": tile_f})
      for tile, memory, tile_b, tile_f in ((4, "narrow", 16, 32), (8, "usual", 32, 64), (8, "wide", 64, 48),
                                           (16, "usual", 32, 32), (16, "wide", 64, 96))),
    *(Workload(f"MoE N {rows}, T 8, {memory}", moe, 8, memory, {**_MOE, "tiling": "static", "tile_rows": rows}, 3)
      for rows, memory in ((8, "usual"), (16, "narrow"), (24, "wide"))),
    *(Workload(f"MoE dynamic, T {tile}, {memory}", moe, tile, memory, {**_MOE, "tiling": "dynamic"}, 4)
      for tile, memory in ((4, "wide"), (8, "narrow"), (8, "wide"), (16, "usual"))),
    *(Workload(f"MoE dynamic, {regions} regions, {memory}", moe, 8, memory,
               {**_MOE, "tiling": "dynamic", "regions": regions}, 5)
      for regions, memory in ((2, "usual"), (1, "wide"))),
    *(Workload(f"attention {schedule}, {memory}", attention, 8, memory, {**_ATTENTION, "schedule": schedule}, 6)
      for schedule, memory in (("coarse", "narrow"), ("interleaved", "usual"), ("dynamic", "usual"),
                               ("dynamic", "wide"))),
    Workload("SwiGLU 32 x 64, T 8, banked", swiglu, 8, "banked",
             {"batch": 64, "hidden": 64, "intermediate": 192, "tile_b": 32, "tile_f": 64}),
    Workload("MoE N 8, T 8, banked", moe, 8, "banked", {**_MOE, "tiling": "static", "tile_rows": 8}, 3),
    Workload("MoE dynamic, T 8, banked", moe, 8, "banked", {**_MOE, "tiling": "dynamic"}, 4),
    Workload("attention dynamic, banked", attention, 8, "banked", {**_ATTENTION, "schedule": "dynamic"}, 6),
)


def compare(workload: Workload) -> Compared:
    """Cycles at beat and at tile fidelity. Traffic must be the same: raises `AssertionError`."""
    program = workload.module.build(**workload.parameters)
    streams = workload.module.streams(program, seed=workload.seed) if hasattr(workload.module, "streams") else {}
    beat = predict(Design(program, workload.hw, streams).graph, workload.hw)
    tile = predict_tiles(program, BeatMachine(workload.hw), streams)
    assert tile.offchip_bytes == beat.offchip_bytes, workload.name
    return Compared(workload.name, beat.cycles, tile.cycles)
