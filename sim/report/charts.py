"""The plots of a report, as SVG: roofline, curves over time, work of units over time. Same run, same bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from .record import Curve, Run

__all__ = ["curves_svg", "heat_svg", "roofline_svg", "short"]

INK, GRID, BLUE, ORANGE, GREEN, RED = "#334155", "#e2e8f0", "#2563eb", "#d97706", "#16a34a", "#dc2626"
FONT = 'font-family="system-ui, sans-serif" font-size="11"'
LEFT, RIGHT, TOP, BOTTOM = 62.0, 16.0, 14.0, 34.0
COLUMNS = 160
"""Columns of the picture of work over time."""
LEVELS = 4


def short(value: float) -> str:
    """A number in at most six characters or so: 950, 1.5k, 12M, 0.25."""
    for scale, name in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= scale:
            return f"{value / scale:.3g}{name}"
    return f"{value:.3g}"


def _svg(width: float, height: float, label: str, parts: Sequence[str]) -> str:
    return "\n".join([f'<svg viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" '
                      f'role="img" aria-label={quoteattr(label)} {FONT}>', *parts, "</svg>"])


def _text(x: float, y: float, text: str, anchor: str = "middle", colour: str = INK) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'


def _line(x0: float, y0: float, x1: float, y1: float, colour: str = GRID, extra: str = "") -> str:
    return f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" stroke="{colour}"{extra}/>'


def roofline_svg(run: Run, width: float = 520, height: float = 300) -> str:
    """FLOPs a cycle over FLOPs a byte, both logarithmic: the roof of this machine, and the run under it."""
    if not run.flops or not run.offchip_bytes or not run.peak_flops:
        return ""
    intensity, reached = run.flops / run.offchip_bytes, run.flops / max(1, run.cycles)
    bound = run.flops / max(1.0, run.bound)
    ridge = run.peak_flops / run.bandwidth
    x0, x1 = (math.floor(math.log10(min(intensity, ridge))) - 0.5, math.ceil(math.log10(max(intensity, ridge))) + 0.5)
    lowest = min(reached, run.bandwidth * 10**x0)
    y0, y1 = math.floor(math.log10(lowest)), math.ceil(math.log10(run.peak_flops) + 0.1)

    def at(x: float, y: float) -> tuple[float, float]:
        return (LEFT + (math.log10(x) - x0) / (x1 - x0) * (width - LEFT - RIGHT),
                height - BOTTOM - (math.log10(y) - y0) / (y1 - y0) * (height - TOP - BOTTOM))

    parts = []
    for power in range(math.ceil(x0), math.floor(x1) + 1):
        x, _ = at(10.0**power, 10.0**y0)
        parts += [_line(x, TOP, x, height - BOTTOM), _text(x, height - BOTTOM + 14, short(10.0**power))]
    for power in range(y0, y1 + 1):
        _, y = at(10.0**x0, 10.0**power)
        parts += [_line(LEFT, y, width - RIGHT, y), _text(LEFT - 6, y + 4, short(10.0**power), "end")]
    corner = at(ridge, run.peak_flops)
    start, end = at(10.0**x0, run.bandwidth * 10.0**x0), at(10.0**x1, run.peak_flops)
    roof = " L".join(f"{x:.1f},{y:.1f}" for x, y in (start, corner, end))
    parts.append(f'<path d="M{roof}" fill="none" stroke="{INK}" stroke-width="2"/>')
    parts.append(_text(end[0], corner[1] - 6, f"all that computes: {run.peak_flops:,} FLOPs/cycle", "end"))
    slope = at(10.0**((x0 + math.log10(ridge)) / 2), run.bandwidth * 10.0**((x0 + math.log10(ridge)) / 2))
    parts.append(_text(slope[0] + 8, slope[1] + 14, f"memory: {run.bandwidth:g} B/cycle", "start"))
    x, y = at(intensity, bound)
    parts += [_line(x - 22, y, x + 22, y, ORANGE, ' stroke-width="2"'),
              _text(x - 22, y + 14, f"bound: {short(bound)}", "end", ORANGE)]
    x, y = at(intensity, reached)
    parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{BLUE}"><title>{intensity:.3g} FLOPs a byte, '
                 f"{reached:.4g} FLOPs a cycle</title></circle>")
    parts.append(_text(x + 9, y + 16, f"this run: {short(reached)} FLOPs/cycle", "start", BLUE))
    parts += [_text((LEFT + width - RIGHT) / 2, height - 4, "FLOPs a byte of off-chip traffic"),
              _line(LEFT, height - BOTTOM, width - RIGHT, height - BOTTOM, INK),
              _line(LEFT, TOP, LEFT, height - BOTTOM, INK)]
    return _svg(width, height, "roofline", parts)


def curves_svg(curves: Sequence[Curve], total: int, width: float = 960, height: float = 170) -> str:
    """Curves of one unit, one above the other's sum, with the limit that they share."""
    colours = (BLUE, ORANGE, GREEN, RED)
    limit = max((curve.limit or 0.0) for curve in curves)
    sums = np.sum([curve.values for curve in curves], axis=0)
    top = float(sums.max()) if len(sums) else 0.0
    top = max(top, limit) if top >= 0.2 * limit else top
    top = max(top * 1.05, 1e-9)
    drawn, floor, roof = width - LEFT - RIGHT, height - BOTTOM, TOP + 14

    def y(value: float) -> float:
        return floor - value / top * (floor - roof)

    def x(cycle: float) -> float:
        return LEFT + cycle / max(1, total) * drawn

    parts = []
    for i in range(5):
        value = top / 1.05 * i / 4
        parts += [_line(LEFT, y(value), width - RIGHT, y(value)), _text(LEFT - 6, y(value) + 4, short(value), "end")]
        parts.append(_text(x(total * i / 4), floor + 14, short(total * i / 4)))
    below = np.zeros(len(sums))
    for curve, colour in zip(curves, colours):
        above = below + curve.values
        steps = [f"M{x(0):.1f},{y(float(below[0])):.1f}"]
        for i, value in enumerate(above):
            left, right = x(i * curve.width), x(min(total, (i + 1) * curve.width))
            steps.append(f"L{left:.1f},{y(float(value)):.1f} L{right:.1f},{y(float(value)):.1f}")
        for i in range(len(above) - 1, -1, -1):
            left, right = x(i * curve.width), x(min(total, (i + 1) * curve.width))
            steps.append(f"L{right:.1f},{y(float(below[i])):.1f} L{left:.1f},{y(float(below[i])):.1f}")
        parts.append(f'<path class="curve" d="{" ".join(steps)} Z" fill="{colour}" fill-opacity="0.75">'
                     f"<title>{escape(curve.name)}: {curve.width:,} cycles a point</title></path>")
        below = above
    if limit and limit <= top:
        parts += [_line(LEFT, y(limit), width - RIGHT, y(limit), RED, ' stroke-dasharray="5 3"')]
    place = LEFT + 8
    for curve, colour in zip(curves, colours):
        parts.append(f'<rect x="{place:.1f}" y="{TOP - 9:.1f}" width="9" height="9" fill="{colour}"/>')
        parts.append(_text(place + 13, TOP, f"{curve.name}, {curve.unit}", "start"))
        place += 34 + 6.2 * len(f"{curve.name}, {curve.unit}")
    if limit:
        parts.append(_text(place, TOP, f"at most {short(limit)}" + ("" if limit <= top else " (above)"), "start", RED))
    parts += [_line(LEFT, floor, width - RIGHT, floor, INK), _text((LEFT + width - RIGHT) / 2, height - 4, "cycle")]
    return _svg(width, height, ", ".join(curve.name for curve in curves), parts)


def heat_svg(run: Run, units: Sequence[int], width: float = 960) -> str:
    """Work over time of some units, by their numbers: the darker, the more of a stretch of time a unit works."""
    left, row = 210.0, 14.0
    height = TOP + row * len(units) + BOTTOM
    stretch = max(1.0, run.total_cycles / COLUMNS)
    cell = (width - left - RIGHT) / COLUMNS
    parts = []
    for line, u in enumerate(units):
        unit, top = run.units[u], TOP + row * line
        levels = np.ceil(_shares(run, u, stretch) * LEVELS).astype(int)
        name = unit.name if len(unit.name) <= 32 else f"{unit.name[:31]}…"
        parts.append(f'<g data-operator={quoteattr(unit.operator)}>' + _text(left - 8, top + 11, name, "end"))
        for level in range(1, LEVELS + 1):
            runs = np.flatnonzero(np.diff(np.concatenate([[0], levels == level, [0]])))
            path = "".join(f"M{left + a * cell:.1f},{top + 1:.1f}h{(b - a) * cell:.1f}v{row - 2:.1f}"
                           f"h{-(b - a) * cell:.1f}z" for a, b in zip(runs[::2], runs[1::2]))
            if path:
                parts.append(f'<path d="{path}" fill="{BLUE}" fill-opacity="{level / LEVELS:.2f}"/>')
        parts.append(f"<title>{escape(unit.name)}: works in {unit.share('busy'):.1%} of all cycles</title></g>")
    floor = TOP + row * len(units)
    parts.append(_line(left, floor + 2, width - RIGHT, floor + 2, INK))
    for i in range(5):
        parts.append(_text(left + (width - left - RIGHT) * i / 4, floor + 16, short(run.total_cycles * i / 4)))
    parts.append(_text((left + width - RIGHT) / 2, height - 4, "cycle"))
    return _svg(width, height, "work of units over time", parts)


def _shares(run: Run, u: int, stretch: float) -> np.ndarray:
    """Share of each stretch of time in which a unit works; the work of a slice is spread evenly over it."""
    rows = run.slices[np.searchsorted(run.slices[:, 0], u):np.searchsorted(run.slices[:, 0], u, side="right")]
    edges = np.arange(COLUMNS + 1) * stretch
    if not len(rows):
        return np.zeros(COLUMNS)
    # Work done before a point in time: piecewise linear between begins and ends.
    ends = np.minimum(rows[:, 2], np.append(rows[1:, 1], rows[-1, 2]))   # slices of a unit may lap over a little
    points = np.stack([rows[:, 1], np.maximum(ends, rows[:, 1])], axis=1).ravel().astype(float)
    work = np.minimum(rows[:, 3], rows[:, 2] - rows[:, 1])
    done = np.cumsum(work)
    levels = np.stack([done - work, done], axis=1).ravel().astype(float)
    return np.clip(np.diff(np.interp(edges, points, levels)) / stretch, 0.0, 1.0)
