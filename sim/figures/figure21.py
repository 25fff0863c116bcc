"""Figure 21: attention, all schedules, by size of the batch and variation of lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .figure import Claim, Figure
from .lab import Lab
from .parallel import BATCH16, BATCH64, SAID, Group, cycles_of, geometric_mean, traces_of
from .plot import COLORS
from .traces import Traces

__all__ = ["PANELS", "TITLE", "make", "points", "sketch"]

TITLE = "attention: schedules over dynamic, by batch and variation of lengths"
PANELS = 3
SCHEDULES = ("coarse", "queued", "interleaved", "dynamic")
COLUMNS = ("batch", "variation", *(f"{name}_over_dynamic" for name in SCHEDULES[:-1]),
           *(f"{name}_cycles" for name in SCHEDULES))
PAPER_MEAN = 1.5
_LABELS = {"queued": "interleaved, one queue", "interleaved": "interleaved, own lists"}


def points() -> int:
    """Runs that `make` takes."""
    return len(SCHEDULES) * (sum(map(len, BATCH64.values())) + sum(map(len, BATCH16.values())))


def make(lab: Lab, traces: Traces, groups: Mapping[int, Mapping[str, Group]] | None = None,
         regions: int = 4) -> Figure:
    """The figure, ``groups`` of traces by size of their batch; other sizes than the paper's are for tests."""
    groups = groups or {16: BATCH16, 64: BATCH64}
    figure = Figure(21, TITLE, COLUMNS, [], notes=[
        f"Inputs: {traces.said}, three batches a class, geometric means.", *SAID,
        "64+16: a batch of 64 and one of 16 after the other, the sum of their cycles."])
    cycles: dict[tuple[str, str], list[dict[str, int]]] = {}
    for batch, classes in groups.items():
        for variation, group in classes.items():
            cycles[str(batch), variation] = [
                {name: cycles_of(lab, trace.values, name, regions=regions) for name in SCHEDULES}
                for trace in traces_of(traces, batch, group)]
    small, large = min(groups), max(groups)
    if small != large:
        for variation in groups[large]:
            cycles[f"{large}+{small}", variation] = [
                {name: a[name] + b[name] for name in SCHEDULES}
                for a, b in zip(cycles[str(large), variation], cycles[str(small), variation])]
    for (batch_name, variation), found in cycles.items():
        ratios = [geometric_mean([one[name] / one["dynamic"] for one in found]) for name in SCHEDULES[:-1]]
        means = [geometric_mean([one[name] for one in found]) for name in SCHEDULES]
        figure.rows.append((batch_name, variation, *ratios, *means))
    both = [r[f"{name}_over_dynamic"] for r in figure.records() for name in ("coarse", "queued")]
    figure.claims.append(Claim("coarse and interleaved (one queue) over dynamic, geometric mean of all", PAPER_MEAN,
                               geometric_mean(both), "first arXiv version, section 5.4"))
    return figure


def sketch(figure: Figure, axes: Sequence[Any]) -> None:
    """Bars of each schedule over dynamic, a panel a batch."""
    names = list(dict.fromkeys(record["batch"] for record in figure.records()))
    for axis, name in zip(axes, names):
        records = figure.select(batch=name)
        x = range(len(records))
        for k, (schedule, color) in enumerate((("coarse", COLORS["static"]), ("queued", COLORS["more"]),
                                               ("interleaved", COLORS["other"]))):
            label = _LABELS.get(schedule, schedule)
            axis.bar([i + 0.27 * (k - 1) for i in x], [r[f"{schedule}_over_dynamic"] for r in records], 0.27,
                     color=color, label=label)
        axis.axhline(1, color=COLORS["dynamic"], label="dynamic")
        axis.set_xticks(list(x), [r["variation"] for r in records])
        axis.set(title=f"{name} requests", xlabel="variation of lengths", ylabel="cycles over dynamic")
    axes[0].margins(y=0.3)
    axes[0].legend()
