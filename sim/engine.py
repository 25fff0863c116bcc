"""Beat fidelity: steps a unit graph cycle by cycle on control tokens."""

from dataclasses import dataclass, field

import numpy as np

from step_lang.errors import ProgramError

from .dispatch import engine, unit_modules
from .network import PUSHED, STATUSES, make_network

__all__ = ["Packing", "RunOutcome", "run_graph"]

PARAMETERS = 64
STATE = 64
PORTS = 16
"""Ports of a unit, at least; more where a unit of the graph has more."""
GRANTS = 8_000_000
"""Grants of all operators that a run can record (the memory is only taken as they come)."""

SLICE = 100_000
"""Cycles that the compiled engine steps at a time: a fraction of a second."""


@dataclass
class Packing:
    """Arrays a unit module fills in ``pack``.

    par : int64 [units, 64]; reserve(n) returns the offset of n private words on the heap; ``preset`` lists
    (offset, values) to be written there before the run. ``hw`` is the hardware configuration, ``calibration``
    the fitted constants (mapping of name to int). ``shared`` is for units that share state: each family of units under
    a key of its own (the memory system: ``sim.memory``).
    """

    par: np.ndarray
    hw: object
    calibration: dict
    heap_size: int = 0
    preset: list = field(default_factory=list)
    shared: dict = field(default_factory=dict)

    def reserve(self, n: int, values: np.ndarray | None = None) -> int:
        """Offset of ``n`` heap words, optionally preset."""
        offset = self.heap_size
        self.heap_size += int(n)
        if values is not None:
            self.preset.append((offset, np.asarray(values, dtype=np.int64)))
        return offset


@dataclass
class RunOutcome:
    """What a modelled run leaves behind.

    reason : "finished", "deadlock", "max_cycles" or "error"
    cycles : clock cycles stepped
    pushed : beats per link; stat : [units, statuses] cycles; trace : [n, 3] (cycle, link, token)
    st, net : final state, for statistics that units keep and for deadlock analysis
    last_status : status of every unit in the last cycle
    grants : [n, 3] (cycle, unit, input): in which order units that arbitrate served their inputs
    levels : [n, 3] (cycle, unit, pages in use) wherever a scratchpad's pages changed, when tracing
    """

    reason: str
    cycles: int
    pushed: np.ndarray
    stat: np.ndarray
    trace: np.ndarray
    st: np.ndarray
    net: object
    par: np.ndarray
    last_status: np.ndarray
    grants: np.ndarray
    levels: np.ndarray


_REASONS = ("finished", "deadlock", "max_cycles", "error")


def run_graph(graph, hw, calibration: dict | None = None, *, trace: bool = False, max_cycles: int = 1_000_000_000,
              quiet_cycles: int = 20_000, trace_size: int = 4_000_000, initial: dict | None = None) -> RunOutcome:
    """Run a ``step_lang.unitgraph.UnitGraph``.

    ``initial`` maps a link index to a list of (token, value) that a bench feeds in: links without a source unit
    are fed in order as space allows; links without a destination are drained every cycle.
    """
    modules = unit_modules()
    compiled = engine(unit.kind for unit in graph.units)
    kinds = {kind: i for i, kind in enumerate(compiled.KINDS)}
    n = len(graph.units)
    build = Packing(np.zeros((n, PARAMETERS), dtype=np.int64), hw, dict(calibration or {}))
    kind = np.zeros(n, dtype=np.int64)
    ports = max([PORTS, *(len(links) + 1 for unit in graph.units for links in (unit.inputs, unit.outputs))])
    ins = np.full((n, ports), -1, dtype=np.int64)
    outs = np.full((n, ports), -1, dtype=np.int64)
    for unit in graph.units:
        kind[unit.index] = kinds[unit.kind]
        ins[unit.index, :len(unit.inputs)] = unit.inputs
        outs[unit.index, :len(unit.outputs)] = unit.outputs
    for unit in graph.units:
        modules[unit.kind].pack(unit, graph, build)
    depths = np.array([link.depth for link in graph.links], dtype=np.int64)
    arbitrates = any(getattr(modules[unit.kind], "ARBITRATES", False) for unit in graph.units)
    net = make_network(depths, build.heap_size, trace_size if trace else 0, GRANTS if arbitrates else 0)
    for offset, values in build.preset:
        net.heap[offset:offset + len(values)] = values
    st = np.zeros((n, STATE), dtype=np.int64)
    stat = np.zeros((n, len(STATUSES)), dtype=np.int64)
    sinks = np.array([u.index for u in graph.units if u.is_sink], dtype=np.int64)
    last_status = np.zeros(n, dtype=np.int64)
    code = 2
    while code == 2 and net.misc[0] < max_cycles:
        # Between slices Python sees a Ctrl-C.
        until = min(max_cycles, int(net.misc[0]) + SLICE)
        code = compiled.run(kind, build.par, st, ins, outs, net, stat, last_status, until, quiet_cycles, sinks)
    filled, granted = int(net.misc[1]), int(net.misc[5])
    if granted > len(net.grants):
        raise ProgramError(f"grants of operators that arbitrate: {granted} vs {len(net.grants)} that a run can record",
                           fix="model a smaller run")
    rows = net.trace[:filled]
    levels = rows[rows[:, 1] < 0]
    levels[:, 1] = -1 - levels[:, 1]
    return RunOutcome(_REASONS[code], int(net.misc[0]), net.links[:, PUSHED].copy(), stat, rows[rows[:, 1] >= 0],
                      st, net, build.par, last_status, net.grants[:granted].copy(), levels)
