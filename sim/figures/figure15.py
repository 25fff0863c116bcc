"""Figure 15: attention, dynamic against coarse, by size of the batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .figure import Claim, Figure
from .lab import Lab
from .parallel import SAID, cycles_of
from .plot import COLORS
from .traces import Traces

__all__ = ["PANELS", "TITLE", "make", "points", "sketch"]

TITLE = "attention: coarse and dynamic schedules by batch"
PANELS = 1
BATCHES = (16, 32, 48, 64)
DEVIATION = 996
COLUMNS = ("batch", "trace", "tokens", "coarse_cycles", "dynamic_cycles", "coarse_over_dynamic")
PAPER = {16: 2.72, 64: 1.43}


def points() -> int:
    """Runs that `make` takes."""
    return 2 * len(BATCHES)


def make(lab: Lab, traces: Traces, batches: Sequence[int] = BATCHES, of: int = 64, regions: int = 4) -> Figure:
    """The figure, batches being the first requests of one of ``of``; other sizes than the paper's are for tests."""
    figure = Figure(15, TITLE, COLUMNS, [], notes=[f"Inputs: {traces.said}, the first requests of a batch.", *SAID[2:]])
    for batch in batches:
        trace = traces.lengths(of, DEVIATION, count=batch)
        coarse, dynamic = (cycles_of(lab, trace.values, name, regions=regions) for name in ("coarse", "dynamic"))
        figure.rows.append((batch, trace.said, sum(trace.values), coarse, dynamic, coarse / dynamic))
        if batch in PAPER:
            figure.claims.append(Claim(f"coarse over dynamic, {batch} requests", PAPER[batch], coarse / dynamic,
                                       "section 5.4", bar=0.10))
    return figure


def sketch(figure: Figure, axes: Sequence[Any]) -> None:
    """Cycles by batch."""
    (axis,) = axes
    records = figure.records()
    for name, color, marker in (("coarse", COLORS["static"], "o"), ("dynamic", COLORS["dynamic"], "s")):
        axis.plot([r["batch"] for r in records], [r[f"{name}_cycles"] for r in records], marker + "-", color=color,
                  label=name)
    axis.set_xticks([r["batch"] for r in records])
    axis.set(yscale="log", xlabel="requests", ylabel="cycles")
    axis.legend()
