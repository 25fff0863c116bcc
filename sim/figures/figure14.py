"""Figure 14: attention of 64 requests, dynamic against interleaved, by deviation of lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .figure import Claim, Figure
from .lab import Lab
from .parallel import BATCH64, SAID, Group, cycles_of, traces_of
from .plot import COLORS
from .traces import Traces

__all__ = ["PANELS", "TITLE", "make", "points", "sketch"]

TITLE = "attention of 64 requests: schedules by variation of lengths"
PANELS = 1
SCHEDULES = ("queued", "interleaved", "dynamic")
COLUMNS = ("variation", "deviation", "trace", "tokens", *(f"{name}_cycles" for name in SCHEDULES),
           "queued_over_dynamic", "interleaved_over_dynamic")
PAPER = {"low": (1.14, 1.26), "high": (1.47, 1.57)}


def points() -> int:
    """Runs that `make` takes."""
    return len(SCHEDULES) * sum(map(len, BATCH64.values()))


def make(lab: Lab, traces: Traces, batch: int = 64, groups: Mapping[str, Group] = BATCH64, regions: int = 4) -> Figure:
    """The figure; other sizes than the paper's are for tests."""
    figure = Figure(14, TITLE, COLUMNS, [], notes=[f"Inputs: {traces.said}.", *SAID])
    for variation, group in groups.items():
        for (deviation, _), trace in zip(group, traces_of(traces, batch, group)):
            cycles = [cycles_of(lab, trace.values, schedule, regions=regions) for schedule in SCHEDULES]
            figure.rows.append((variation, deviation, trace.said, sum(trace.values), *cycles, cycles[0] / cycles[2],
                                cycles[1] / cycles[2]))
    for variation, paper in PAPER.items():
        for name, bar in (("queued", 0.10), ("interleaved", None)):
            ours = [r[f"{name}_over_dynamic"] for r in figure.select(variation=variation)]
            what = "interleaved, from one queue," if name == "queued" else "interleaved, each region its own list,"
            figure.claims.append(Claim(f"{what} over dynamic, {variation} variation", paper, (min(ours), max(ours)),
                                       "section 5.4", bar=bar))
    return figure


def sketch(figure: Figure, axes: Sequence[Any]) -> None:
    """Cycles over those of dynamic, by deviation."""
    (axis,) = axes
    records = sorted(figure.records(), key=lambda r: (r["deviation"], r["trace"]))
    x = range(len(records))
    axis.bar([k - 0.2 for k in x], [r["queued_over_dynamic"] for r in records], 0.4, color=COLORS["static"],
             label="interleaved, one queue")
    axis.bar([k + 0.2 for k in x], [r["interleaved_over_dynamic"] for r in records], 0.4, color=COLORS["other"],
             label="interleaved, own lists")
    axis.axhline(1, color=COLORS["dynamic"])
    axis.set_xticks(list(x), [str(r["deviation"]) for r in records])
    axis.set(xlabel="standard deviation of lengths (tokens)", ylabel="cycles over dynamic")
    axis.margins(y=0.25)
    axis.legend()
