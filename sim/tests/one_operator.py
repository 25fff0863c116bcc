"""Programs of one operator between loads and a store, and when the tokens of their streams come at each fidelity."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sim.prediction import predict
from sim.tile import Machine
from sim.tile import predict as predict_tiles
from sim.tile.network import DONE, TRACED
from step_hw.design import Design
from step_lang import Program, Selector, bf16, ops, scalar, u32
from step_lang.hwconfig import HardwareConfig
from step_lang.memory_config import MemoryConfig

__all__ = ["FAST", "HW", "Mini", "Times", "at_beats", "at_tiles"]

FAST = MemoryConfig(channels=16, burst_bytes=32, interval=1, latency=10, capacity_bytes=1 << 22)
"""An element of 4 x 4 bf16 a cycle to every port."""
HW = HardwareConfig(tile=4, memory=FAST, link_depth=256, scratchpad_frames=4096, accumulator_entries=1024)
"""Deep links: no operator waits for the one behind it. An elementwise unit takes four cycles a physical tile."""


@dataclass
class Mini:
    """A program being made: ``n`` tiles, or groups of tiles, of 8 x 12 where nothing else is said."""

    program: Program
    n: int
    streams: dict[str, Any] = field(default_factory=dict)

    def load(self, name: str = "x", rows: int = 8, cols: int = 12, *inner: int, dtype: Any = bf16) -> Any:
        """Tiles of a tensor in their order, in shape ``[n, *inner]``."""
        shape = (self.n, *inner)
        tensor = self.program.tensor(f"{name}_tensor", (math.prod(shape) * rows, cols), dtype)
        stride = tuple(math.prod(shape[k + 1:]) for k in range(len(shape)))
        return ops.linear_offchip_load(tensor, (rows, cols), shape=shape, stride=stride, name=name)

    def host(self, name: str, values: Sequence[Any], type_: Any = None) -> Any:
        """An input stream of ``values``, numbers unless ``type_`` says otherwise."""
        self.streams[name] = values
        shape, inner = [], values
        while isinstance(inner, list):
            shape.append(len(inner))
            inner = inner[0]
        return ops.input_stream(name, type_ or scalar(u32), tuple(shape))

    def numbers(self, name: str = "x") -> Any:
        """0 .. n - 1."""
        return self.host(name, list(range(self.n)))

    def selectors(self, name: str, choose: Callable[[int], set[int]], bits: int = 2) -> Any:
        """``choose(i)`` for each i of n."""
        return self.host(name, [choose(i) for i in range(self.n)], Selector(bits))

    def store(self, stream: Any, *shape: int) -> None:
        """To a tensor as large as the stream, ``shape`` where that is known only at run time."""
        if shape:
            stream = stream.assume(shape)
        type_ = stream.type
        tensor = self.program.tensor(f"{stream.name}_stored", (math.prod(stream.shape) * type_.rows, type_.cols),
                                     type_.dtype)
        ops.linear_offchip_store(stream, tensor, name=f"store_{stream.name}")


@dataclass(frozen=True)
class Times:
    """A run. ``streams``: of each stream's tokens but done, the cycle in which the first beat of the first one can be
    taken, and the last beat of the last one; ``cycles``: first read to last write; ``grants``: who was served when."""

    streams: Mapping[str, tuple[int, int]]
    cycles: int
    grants: Mapping[str, list[int]]
    busy: Mapping[str, int]
    flops: int = 0


def _made(make: Callable[[Mini], None], n: int) -> Mini:
    with Program("one_operator") as program:
        mini = Mini(program, n)
        make(mini)
    return mini


def at_beats(make: Callable[[Mini], None], n: int, hw: HardwareConfig) -> Times:
    """At beat fidelity, of the link on which the operator's own unit leaves its result."""
    mini = _made(make, n)
    design = Design(mini.program, hw, mini.streams)
    run = predict(design.graph, hw, trace=True)
    trace = run.outcome.trace[(run.outcome.trace[:, 2] & DONE) == 0]
    links: dict[str, int] = {}
    for link in design.graph.links:
        links.setdefault(link.stream, link.index)
    times = {}
    for stream in mini.program.streams:
        pushed = trace[trace[:, 1] == links.get(design.lowered.physical_name(stream.name), -1), 0]
        if len(pushed):
            times[stream.name] = int(pushed[0]) + 1, int(pushed[-1]) + 1
    return Times(times, run.cycles, run.arbitration, {})


def at_tiles(make: Callable[[Mini], None], n: int, machine: Machine) -> Times:
    """At tile fidelity."""
    mini = _made(make, n)
    run = predict_tiles(mini.program, machine, mini.streams)
    trace = run.run.net.trace[:run.run.net.misc[TRACED]]
    trace = trace[(trace[:, 1] & DONE) == 0]
    times = {}
    for k, stream in enumerate(mini.program.streams):
        tokens = trace[trace[:, 0] == k]
        if len(tokens):
            times[stream.name] = int(tokens[0, 4]), int(np.max(tokens[-1, 5]))
    return Times(times, run.cycles, run.arbitration, run.busy, run.flops)
