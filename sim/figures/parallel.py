"""Requests of attention on parallel regions, as figures 14, 15 and 21 compare their schedules."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .lab import Lab
from .traces import Trace, Traces
from .workloads import attention_point

__all__ = ["AHEAD", "BATCH16", "BATCH64", "BLOCK", "SAID", "Group", "cycles_of", "geometric_mean", "traces_of"]

Group = Sequence[tuple[int, int]]
"""Batches of a class: standard deviation of lengths, and position among the files of that deviation."""

BATCH64: dict[str, Group] = {"low": ((484, 0), (508, 0), (477, 0)), "med": ((996, 0), (995, 1), (995, 0)),
                             "high": ((1374, 0), (1370, 0), (1457, 0))}
"""The artifact's choice for its figure 14."""
BATCH16: dict[str, Group] = {"low": ((174, 0), (198, 0), (198, 1)), "med": ((986, 0), (987, 0), (987, 1)),
                             "high": ((1454, 0), (1455, 0), (1456, 0))}
"""The three lowest deviations, those nearest to the medium class of 64, and the three highest whose requests fit into
6464 rows of cache."""
BLOCK = 16
AHEAD = 1
SAID = [
    "queued: round robin, but requests leave one queue in order, so that a region with a long request keeps the "
    "others from theirs; the paper's interleaved schedule is this one (its text says that it blocks). interleaved: "
    "each region has its own list and never waits for another.",
    "Links hold one tile, as in the artifact.",
    f"coarse: blocks of {BLOCK} requests, a block a region. dynamic: a region is given its next request when it has "
    "completed one."]


def traces_of(traces: Traces, batch: int, group: Group) -> list[Trace]:
    """Lengths of the batches of a class."""
    return [traces.lengths(batch, deviation, position) for deviation, position in group]


def cycles_of(lab: Lab, lengths: Sequence[int], schedule: str, **settings: int) -> int:
    """Cycles of a batch."""
    if schedule == "coarse":
        settings["block"] = BLOCK
    return lab.run(attention_point(lengths, schedule, ahead=AHEAD, **settings)).cycles


def geometric_mean(values: Sequence[float]) -> float:
    """Of numbers above 0."""
    return math.exp(sum(map(math.log, values)) / len(values))
