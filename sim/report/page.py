"""A run as one HTML page that needs nothing else: no network, no file beside it. Same run, same bytes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from step_lang.dims import format_shape
from step_lang.picture import Mark, render

from .charts import curves_svg, heat_svg, roofline_svg, short
from .findings import findings
from .record import STATES, Run
from .summary import facts

__all__ = ["report_html"]

DRAWN = 2500
"""Operators that a picture has, at most."""
ROWS = 40
"""Units shown at first in a list, those that work or wait most."""

STATE_COLOURS = {"busy": "#2563eb", "starved": "#fbbf24", "blocked": "#dc2626", "memory": "#a855f7", "idle": "#e2e8f0"}
STATE_MEANINGS = {"busy": "works", "starved": "waits for input", "blocked": "waits for room at its output",
                  "memory": "waits for the memory", "idle": "before its first or after its last work"}


@dataclass(frozen=True)
class _Cell:
    """A cell of a table: what is shown, what it is sorted by."""

    text: str
    key: float | str


def report_html(run: Run, more: Mapping[str, str] | None = None) -> str:
    """The page; ``more``: further facts by name, such as the parameters."""
    environment = Environment(loader=PackageLoader("sim.report", "."), autoescape=True, undefined=StrictUndefined,
                              trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    ranked = sorted(range(len(run.units)), key=lambda u: (-_weight(run, u), u))
    listed = sorted(ranked[:ROWS])
    bandwidth = [curve for curve in run.curves if curve.unit == "B/cycle"]
    held = [curve for curve in run.curves if curve.unit == "B" and curve.values.any()]
    return environment.get_template("page.html.j2").render(
        run=run, facts=[*facts(run), *run.machine, *(more or {}).items()], findings=findings(run),
        graph=Markup(_graph(run)) if len(run.program.operators) <= DRAWN else "", drawn=DRAWN,
        roofline=Markup(roofline_svg(run)), states=STATES, colours=STATE_COLOURS, meanings=STATE_MEANINGS,
        bars=[_bar(run, u) for u in listed], more_bars=[_bar(run, u) for u in sorted(ranked[ROWS:])],
        bandwidth=Markup(curves_svg(bandwidth, run.total_cycles)) if bandwidth else "",
        held=Markup(curves_svg(held, run.total_cycles)) if held else "",
        heat=Markup(heat_svg(run, listed)), shown=len(listed), operators=_operators(run), units=_units(run),
        buffers=sorted(((name, _Cell(f"{most:,}", most), _Cell(f"{size:,}" if size else "", size or 0),
                         _Cell(f"{most / size:.1%}" if size else "", most / size if size else 0.0))
                        for name, (most, size) in run.onchip_peak.items())))


def _weight(run: Run, u: int) -> float:
    unit = run.units[u]
    return unit.share("busy") + 0.5 * unit.share("blocked") + (0.1 if unit.category == "compute" else 0.0)


def _heat(share: float) -> str:
    """White to orange-red by share."""
    share = min(1.0, max(0.0, share))
    return "#" + "".join(f"{round(255 + (other - 255) * share):02x}" for other in (249, 115, 60))


def _graph(run: Run) -> str:
    busy = run.busy_of_operators()
    costs = {cost.name: cost for cost in run.costs}
    marks = {}
    for op in run.program.operators:
        share, cost = busy.get(op.name, 0.0), costs[op.name]
        title = [f"{op.kind} {op.name}, {_line(op.source)}", f"works in {share:.1%} of all cycles"]
        title += [f"{cost.flops:,} FLOPs"] if cost.flops else []
        title += [f"{cost.offchip_bytes:,} bytes off-chip"] if cost.offchip_bytes else []
        marks[op.name] = Mark(_heat(share), f"busy {share:.1%}", "\n".join(title))
    return render(run.program, marks)


def _line(source: str) -> str:
    path, _, line = source.rpartition(":")
    return f"{os.path.basename(path)}:{line}" if path else source


def _bar(run: Run, u: int) -> dict[str, Any]:
    unit = run.units[u]
    parts = [(state, f"{100 * unit.share(state):.2f}", unit.states[state]) for state in STATES if unit.states[state]]
    return {"name": unit.name, "operator": unit.operator, "parts": parts, "busy": f"{unit.share('busy'):.1%}"}


def _operators(run: Run) -> list[tuple[str, list[_Cell]]]:
    busy = run.busy_of_operators()
    rows = []
    for op, cost in zip(run.program.operators, run.costs):
        shape = ", ".join(format_shape(stream.shape) for stream in op.outputs)
        rows.append((op.name, [
            _Cell(op.name, op.name), _Cell(op.kind, op.kind), _Cell(_line(op.source), _line(op.source)),
            _Cell(shape, shape), _Cell(f"{busy.get(op.name, 0.0):.1%}", busy.get(op.name, 0.0)),
            *(_Cell(f"{n:,}", n) for n in (cost.flops, cost.offchip_bytes, cost.onchip_bytes))]))
    return rows


def _units(run: Run) -> list[tuple[str, list[_Cell]]]:
    return [(unit.operator, [
        _Cell(unit.name, unit.name), _Cell(unit.kind, unit.kind), _Cell(unit.operator, unit.operator),
        _Cell(f"{unit.moved:,}", unit.moved),
        *(_Cell(f"{unit.share(state):.1%}", unit.share(state)) for state in STATES),
        _Cell(short(unit.offchip_bytes) if unit.offchip_bytes else "", unit.offchip_bytes)]) for unit in run.units]
