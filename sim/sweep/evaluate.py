"""What one point costs: the numbers of a row of a sweep."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np

from step_lang import Numerics, Program, interpret, metrics
from step_lang.errors import BadParameter, StepError
from step_lang.hwconfig import HardwareConfig
from step_lang.lowering import lower
from step_lang.mapping import build_unit_graph
from step_lang.metrics import DEFAULT_COMPUTE_BW, Metrics
from step_lang.roofline import allocated_flops
from step_lang.unitgraph import UnitGraph

from ..engine import run_graph
from ..prediction import Prediction, predict
from ..tile.machine import BeatMachine, Machine, RooflineMachine
from ..units import scratchpad
from .content import content_hash, model_hash

__all__ = ["FIDELITIES", "NUMBERS", "Case", "Model", "Scalar", "evaluate", "numbers_of", "prepare"]

Scalar: TypeAlias = "int | float | bool | str | None"

NUMBERS: dict[str, type] = {
    "cycles": int, "total_cycles": int, "offchip_read_bytes": int, "offchip_write_bytes": int, "traffic_exact": bool,
    "onchip_bytes": int, "peak_frames": int, "peak_bytes": int, "flops": int, "compute_utilisation": float,
    "wall_seconds": float,
}
"""Names of the numbers of a point, in the order of a row, and their types.

cycles, total_cycles, offchip_read_bytes, offchip_write_bytes : as of `sim.prediction.Prediction`
traffic_exact : whether these bytes are the symbolic expression's at the run's sizes
onchip_bytes, flops : the symbolic expressions at the run's sizes
peak_frames, peak_bytes : scratchpads at their fullest, summed over scratchpads; tile fidelity knows no frames, and the
    bytes of the program's own bufferizes only
compute_utilisation : flops over cycles times the FLOPs/cycle of all operators that compute, each on a unit of its own
wall_seconds : what it took to build, lower and model the point
"""


@dataclass(frozen=True)
class Case:
    """A program on a hardware configuration, or at tile fidelity on a roofline machine. ``streams`` are values of its
    input streams, ``constants`` the calibration's."""

    program: Program
    hw: HardwareConfig | RooflineMachine
    streams: Mapping[str, Any] = field(default_factory=dict)
    constants: Mapping[str, int] = field(default_factory=dict)


class Model(Protocol):
    """A case made ready by `prepare`.

    content : hash of all that its numbers depend on
    places : hash of what its errors say besides, such as source lines
    kinds : of what is compiled for it, by name
    """

    content: str
    places: str
    kinds: frozenset[str]

    def warm_up(self) -> None:
        """Compile what is not compiled yet."""

    def run(self) -> dict[str, Scalar]:
        """The numbers, wall_seconds left out. Raises `StepError` for a case that the model refuses."""


class _Beat:
    """Beat fidelity: every beat of the lowered program."""

    def __init__(self, case: Case):
        if not isinstance(case.hw, HardwareConfig):
            raise BadParameter("fidelity 'beat': a roofline machine vs a hardware configuration", fix="use 'tile'")
        case.program.check()
        self.hw = case.hw
        lowered = lower(case.program, case.hw)
        streams = lowered.physical_inputs(case.streams)
        self.case, self.costs = case, metrics(case.program)
        self.graph = build_unit_graph(lowered, case.hw, streams)
        self.content = content_hash("beat", model_hash(), _structure(self.graph), streams, case.hw, case.constants,
                                    [vars(row) for row in self.costs.rows], allocated_flops(case.program, case.hw))
        self.places = content_hash([unit.origin for unit in self.graph.units])
        self.kinds = frozenset(unit.kind for unit in self.graph.units)

    def warm_up(self) -> None:
        run_graph(self.graph, self.hw, dict(self.case.constants), max_cycles=1)

    def run(self) -> dict[str, Scalar]:
        found = predict(self.graph, self.hw, self.case.constants)
        costs = _at_run_time(self.case, self.hw, self.costs, found)
        frame_bytes = {unit.name: -(-unit.params["payload"].data_bits // 8) for unit in self.graph.units
                       if unit.kind == scratchpad.KIND}
        flops = int(costs.flops)
        return {
            "cycles": found.cycles,
            "total_cycles": found.total_cycles,
            "offchip_read_bytes": found.offchip_read_bytes,
            "offchip_write_bytes": found.offchip_write_bytes,
            "traffic_exact": found.offchip_bytes == int(costs.offchip_bytes),
            "onchip_bytes": int(costs.onchip_bytes),
            "peak_frames": sum(found.peak_frames.values()),
            "peak_bytes": sum(n * frame_bytes[name] for name, n in found.peak_frames.items()),
            "flops": flops,
            "compute_utilisation": _share(flops, allocated_flops(self.case.program, self.hw) * found.cycles),
        }


class _Tile:
    """Tile fidelity: every logical tile, on the machine that the configuration describes."""

    def __init__(self, case: Case):
        from ..tile.graph import tile_graph

        case.program.check()
        self.case = case
        self.machine: Machine = BeatMachine(case.hw) if isinstance(case.hw, HardwareConfig) else case.hw
        graph = tile_graph(case.program, self.machine, case.streams)
        self.content = content_hash(
            "tile", model_hash(), case.hw, graph.kinds, graph.names, graph.par, graph.ins, graph.outs, graph.heap,
            graph.cost, graph.capacities, graph.ends, graph.traced,
            [(stream.name, stream.shape, stream.type) for stream in case.program.streams],
            [vars(row) for row in metrics(case.program).rows])
        self.places = content_hash([op.source for op in case.program.operators])
        self.kinds = frozenset(f"tile {kind}" for kind in graph.kinds)

    def warm_up(self) -> None:
        self.run()

    def run(self) -> dict[str, Scalar]:
        from ..tile import predict as predict_tiles

        found = predict_tiles(self.case.program, self.machine, self.case.streams)
        allocated = found.allocated_compute
        if isinstance(self.case.hw, HardwareConfig):  # its machine counts tiles, not FLOPs/cycle
            allocated = allocated_flops(self.case.program, self.case.hw)
        return {
            "cycles": found.cycles,
            "total_cycles": found.total_cycles,
            "offchip_read_bytes": found.offchip_read_bytes,
            "offchip_write_bytes": found.offchip_write_bytes,
            "traffic_exact": found.offchip_bytes == int(found.costs.offchip_bytes),
            "onchip_bytes": found.onchip_bytes,
            "peak_bytes": sum(found.peak_buffer_bytes.values()),
            "flops": found.flops,
            "compute_utilisation": _share(found.flops, allocated * found.cycles),
        }


FIDELITIES: dict[str, Callable[[Case], Model]] = {"beat": _Beat, "tile": _Tile}
"""Fidelities by name, each a function that prepares a case."""


def numbers_of(fidelity: str) -> tuple[str, ...]:
    """The `NUMBERS` that a fidelity has."""
    return tuple(name for name in NUMBERS if (fidelity, name) != ("tile", "peak_frames"))


def prepare(case: Case, fidelity: str = "beat") -> Model:
    """The case, lowered and hashed, ready to be run. Raises `StepError` for a case that cannot be built."""
    if fidelity not in FIDELITIES:
        raise BadParameter(f"fidelity: {fidelity!r} vs one of {', '.join(FIDELITIES)}")
    return FIDELITIES[fidelity](case)


def evaluate(case: Case, fidelity: str = "beat") -> dict[str, Scalar]:
    """All numbers of a case (`numbers_of`). Raises `StepError` for one that is refused."""
    began = time.perf_counter()
    return {**prepare(case, fidelity).run(), "wall_seconds": time.perf_counter() - began}


def _structure(graph: UnitGraph) -> dict[str, Any]:
    """What the model sees of a unit graph; not the lines of the program's file."""
    return {"units": [(unit.kind, unit.name, unit.inputs, unit.outputs, unit.params, unit.config, unit.is_sink)
                      for unit in graph.units],
            "links": graph.links, "tensors": graph.tensors, "tile": graph.tile, "memory": graph.memory}


def _share(flops: int, most: int) -> float:
    return round(flops / most, 6) if most else 0.0


class _SizesOnly(Numerics):
    """Arithmetic whose matrix products are zeros: sizes do not depend on them, and they are most of the work."""

    def group_dots(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return self._zeros(a, b)[:, None]

    def matmul(self, a: np.ndarray, b: np.ndarray, acc: np.ndarray | None = None) -> np.ndarray:
        return self._zeros(a, b) if acc is None else acc

    @staticmethod
    def _zeros(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        result = np.int32 if a.dtype == np.int8 else np.float32
        return np.zeros((a.shape[0], a.shape[1], b.shape[2]), dtype=result)


def _at_run_time(case: Case, hw: HardwareConfig, costs: Metrics, found: Prediction) -> Metrics:
    """``costs`` with the sizes that a run in the model's order has. What tensors hold does not matter to them: the
    model refuses programs that it steers (`sim.steering`)."""
    if set(costs.symbols) <= {DEFAULT_COMPUTE_BW}:
        return costs
    read = {tensor.name: tensor for op in case.program.operators for tensor in op.tensors_read}
    with np.errstate(all="ignore"):
        result = interpret(case.program, {name: np.zeros(t.shape, t.dtype.numpy) for name, t in read.items()},
                           case.streams, _SizesOnly(int(hw.k_per_cycle or hw.tile)),
                           arbitration=found.arbitration, keep_streams=False)
    sized = costs.substitute(result.symbols)
    unknown = set(sized.symbols) - {DEFAULT_COMPUTE_BW}
    if unknown:
        raise StepError(f"sizes of '{case.program.name}': {', '.join(sorted(map(str, unknown)))} vs those of a run")
    return sized
