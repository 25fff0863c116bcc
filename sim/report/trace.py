"""A run as a timeline for Perfetto or chrome://tracing (Trace Event Format): a track for each unit, a counter for each
curve. A cycle is a microsecond there."""

from __future__ import annotations

import json
from typing import Any

from .record import Run

__all__ = ["trace_json"]

_GROUPS = ("memory", "compute", "routing", "shape")
_COUNTERS = len(_GROUPS) + 1


def trace_json(run: Run) -> str:
    """The trace, one event a line; at most `sim.report.record.SLICES` slices (or one a unit), so that a long run's file
    is no larger than a short one's: ``otherData`` says over which gap slices were merged."""
    events: list[dict[str, Any]] = []
    for pid, group in enumerate(_GROUPS, 1):
        if any(unit.category == group for unit in run.units):
            events += _name("process", pid, 0, f"{group} units", pid)
    events += _name("process", _COUNTERS, 0, "over time", 0)
    pids = [_GROUPS.index(unit.category) + 1 for unit in run.units]
    for tid, (pid, unit) in enumerate(zip(pids, run.units), 1):
        events += _name("thread", pid, tid, unit.name, tid)
    for u, begin, end, work in run.slices.tolist():
        unit = run.units[u]
        events.append({"ph": "X", "pid": pids[u], "tid": u + 1, "ts": begin, "dur": end - begin, "cat": unit.category,
                       "name": unit.kind, "args": {"operator": unit.operator, "work": work}})
    for curve in run.curves:
        before = None
        values = [round(float(value), 3) for value in curve.values] + [0.0]
        for i, value in enumerate(values):
            if value != before:
                events.append({"ph": "C", "pid": _COUNTERS, "tid": 0, "ts": min(i * curve.width, run.total_cycles),
                               "name": f"{curve.name} ({curve.unit})", "args": {curve.unit: value}})
            before = value
    head = {"program": run.program.name, "simulator": run.simulator, "time": "1 us is 1 cycle", "cycles": run.cycles,
            "total_cycles": run.total_cycles,
            "merged": f"slices at most {run.gap} cycles apart" if run.gap >= 0 else "no slices"}
    lines = ",\n".join(json.dumps(event, separators=(",", ":")) for event in events)
    return f'{{"displayTimeUnit":"ns","otherData":{json.dumps(head)},"traceEvents":[\n{lines}\n]}}\n'


def _name(what: str, pid: int, tid: int, name: str, order: int) -> list[dict[str, Any]]:
    common = {"ph": "M", "pid": pid, "tid": tid}
    return [{**common, "name": f"{what}_name", "args": {"name": name}},
            {**common, "name": f"{what}_sort_index", "args": {"sort_index": order}}]
