"""How deep links must be: the least depths without deadlock, and the least that cost no cycles.

Found by running the model, whose cycles are those of RTL, so for one program, its input sizes and one configuration.
**Least** means: every deepened link made one beat shallower, the others as they are, deadlocks or is slower (`Proof`).
That is a minimum link by link; another set of links may do as well, since which link of a cycle is deepened is a
choice. It is made the same way every time.

* Without deadlock: from the default depth, the full links of each deadlock's cycle are deepened to what they held in a
  run on links without bounds, until the program ends.
* Full throughput: all links as deep as that run needed.

Both are then made smaller: first all at once (the least common bound), then in groups, those that store most first,
which are halved where they cannot go back to the default depth as a whole, and a single link by bisection. So a link
that need not be deeper costs little, and the number of runs grows with the number of those that must.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from step_lang.deadlock import deadlock_report, waiting_cycle
from step_lang.errors import BadParameter, ConfigError, DeadlockError
from step_lang.hwconfig import KEYS, HardwareConfig
from step_lang.unitgraph import UnitGraph

from .engine import run_graph
from .network import COUNT, NEED
from .prediction import predict

__all__ = ["UNBOUNDED", "Depths", "Proof", "Sizing", "size_fifos"]

UNBOUNDED = next(key.most for key in KEYS if (key.section, key.name) == ("link", "depth"))
"""Depth of "unbounded" links: the most that a configuration can ask for."""

NO_LIMIT = 1_000_000_000

QUIET = 1000
"""Cycles in which nothing moves, the memory neither, that are a deadlock: far more than any unit thinks, and far fewer
than the engine's own patience, which would be most of the time of all these runs."""

Report = Callable[[str, int, int, int], None]
"""``report(phase, links settled, links in question, model runs so far)``"""


@dataclass(frozen=True)
class Proof:
    """What happens with ``link`` one beat shallower than ``depth``, all other links as deep as found.

    cycles : total cycles of that run, None where it deadlocks; outcome : the same in words
    """

    link: str
    depth: int
    cycles: int | None
    outcome: str


@dataclass(frozen=True)
class Depths:
    """Depths that reach one goal.

    depths : of the links that must be deeper than the default, by name, in the order of the graph's links
    cycles, total_cycles : with them, as `sim.prediction.Prediction` counts
    beats, bits : stored by the deepened links beyond the default depth
    proof : one for each of them
    """

    depths: Mapping[str, int]
    cycles: int
    total_cycles: int
    beats: int
    bits: int
    proof: tuple[Proof, ...]

    def apply(self, hw: HardwareConfig) -> HardwareConfig:
        """``hw`` with these ``[link.depths]``."""
        return dataclasses.replace(hw, link_depths=dict(self.depths))


@dataclass(frozen=True)
class Sizing:
    """What `size_fifos` found.

    default : depth of all links that are not named
    deadlock_free, full : the two goals
    unbounded_cycles, unbounded_total_cycles : on links of `UNBOUNDED` beats
    default_total_cycles : with all links of the default depth; None: that deadlocks, as ``default_deadlock`` tells
    capped : links that were full even then
    tolerance : share of the unbounded cycles that full throughput may lose
    runs : of the model
    """

    default: int
    deadlock_free: Depths
    full: Depths
    unbounded_cycles: int
    unbounded_total_cycles: int
    default_total_cycles: int | None
    default_deadlock: str
    capped: tuple[str, ...]
    tolerance: float
    runs: int

    def as_json(self) -> dict[str, Any]:
        """Every number."""
        return dataclasses.asdict(self)


def size_fifos(design: Any, hw: HardwareConfig | None = None, calibration: Mapping[str, int] | None = None, *,
               tolerance: float = 0.0, report: Report | None = None) -> Sizing:
    """The least depths for ``design``, a `UnitGraph` (then with its ``hw``) or a `step_hw.design.Design`.

    ``[link.depths]`` of ``hw`` do not count: every link starts with ``link.depth``. ``tolerance``: 0.01 lets full
    throughput be one percent slower than unbounded links. Raises `DeadlockError` for a program that deadlocks on
    links of any depth, `RtlError` for one that ends with a unit's error, `BadParameter` for a negative tolerance.
    """
    if not 0 <= tolerance < 1:
        raise BadParameter(f"tolerance: {tolerance!r} vs a share of the cycles, 0 or more and below 1")
    graph = design if isinstance(design, UnitGraph) else design.graph
    hw = hw if hw is not None else getattr(design, "hw", None)
    if hw is None:
        raise ConfigError("size_fifos of a unit graph: no hardware configuration vs the one that it was built for")
    trials = _Trials(graph, hw, calibration or {}, report or (lambda *_: None))
    count, base = len(graph.links), hw.link_depth
    trials.report("unbounded links", 0, 1, 0)
    unbounded = predict(trials.graph_of([UNBOUNDED] * count), hw, calibration)
    trials.runs += 1
    need = [int(n) for n in unbounded.outcome.net.links[:, NEED]]  # type: ignore[attr-defined]
    default = trials.run([base] * count)
    free = _free_of_deadlock(trials, [base] * count, need)

    limit = int(unbounded.total_cycles * (1 + tolerance))
    start = [max(base, n) for n in need]
    if trials.run(start, limit).total_cycles is None:  # a unit that asks for room which it does not use
        start = [UNBOUNDED] * count
    full = _Minimiser(trials, base, limit, "full throughput").least(start)
    return Sizing(
        base,
        trials.depths(free, base, None),
        trials.depths(full, base, unbounded.total_cycles),
        unbounded.cycles,
        unbounded.total_cycles,
        default.total_cycles,
        default.report,
        tuple(link.name for link in graph.links if need[link.index] >= UNBOUNDED),
        tolerance,
        trials.runs,
    )


@dataclass(frozen=True)
class _Trial:
    """A run; no cycles where it did not finish within its limit. ``report``: the deadlock, told in full, and ``links``
    in short; ``cycle``: full links of its cycle, ``full``: all full links, by index."""

    total_cycles: int | None
    report: str = ""
    links: str = ""
    cycle: tuple[int, ...] = ()
    full: tuple[int, ...] = ()


@dataclass
class _Trials:
    """Runs of the model with various depths, each once."""

    graph: UnitGraph
    hw: HardwareConfig
    calibration: Mapping[str, int]
    report: Report
    runs: int = 0
    _known: dict[tuple[tuple[int, ...], int], _Trial] = field(default_factory=dict)

    def graph_of(self, depths: Sequence[int]) -> UnitGraph:
        links = [dataclasses.replace(link, depth=depth) for link, depth in zip(self.graph.links, depths, strict=True)]
        return dataclasses.replace(self.graph, links=links)

    def run(self, depths: Sequence[int], limit: int = NO_LIMIT) -> _Trial:
        """``depths`` by link; a run that takes more than ``limit`` cycles is broken off."""
        key = tuple(depths), limit
        if key not in self._known:
            self.runs += 1
            self._known[key] = self._run(depths, limit)
        return self._known[key]

    def _run(self, depths: Sequence[int], limit: int) -> _Trial:
        graph = self.graph_of(depths)
        outcome = run_graph(graph, self.hw, dict(self.calibration), max_cycles=limit, quiet_cycles=QUIET)
        if outcome.reason == "finished":
            return _Trial(outcome.cycles)
        if outcome.reason != "deadlock":
            return _Trial(None)
        fill = outcome.net.links[:, COUNT]  # type: ignore[attr-defined]
        index = {link.name: link.index for link in graph.links}
        waits = waiting_cycle(graph, fill)
        cycle = {index[w.link] for w in waits if w.why == "full" and not w.on_scratchpad}
        full = (link.index for link in graph.links if fill[link.index] >= link.depth)
        links = ", ".join(f"{w.link} {w.why}" for w in waits)
        return _Trial(None, deadlock_report(graph, fill), links, tuple(sorted(cycle)), tuple(full))

    def depths(self, found: Sequence[int], base: int, target: int | None) -> Depths:
        """The result for the depths ``found``, with its proof; ``target``: cycles of unbounded links."""
        run = predict(self.graph_of(found), self.hw, self.calibration)
        deeper = [link for link in self.graph.links if found[link.index] > base]
        proof = []
        for i, link in enumerate(deeper):
            self.report("proof, one beat less", i, len(deeper), self.runs)
            less = self.run(_with(found, [link.index], found[link.index] - 1))
            if less.total_cycles is not None:
                outcome = f"{less.total_cycles - (target or 0)} cycles more than unbounded links"
            else:
                outcome = f"deadlock: {less.links}" if less.links else less.report or "an error of a unit"
            proof.append(Proof(link.name, found[link.index], less.total_cycles, outcome))
        beats = {link.name: found[link.index] - base for link in deeper}
        bits = sum(beats[link.name] * link.payload.data_bits for link in deeper)
        return Depths({link.name: found[link.index] for link in deeper}, run.cycles, run.total_cycles,
                      sum(beats.values()), bits, tuple(proof))


def _free_of_deadlock(trials: _Trials, depths: list[int], need: Sequence[int]) -> list[int]:
    """Depths by link with which the program ends."""
    base = min(depths)
    while not (trial := trials.run(depths)).total_cycles:
        grow = [i for i in trial.cycle if depths[i] < UNBOUNDED] or [i for i in trial.full if depths[i] < UNBOUNDED]
        if not grow:
            predict(trials.graph_of(depths), trials.hw, trials.calibration)  # tells what no link can cure
            raise DeadlockError(trial.report)
        for i in grow:
            depths[i] = need[i] if need[i] > depths[i] else min(2 * depths[i], UNBOUNDED)
        trials.report("free of deadlock", 0, sum(d > base for d in depths), trials.runs)
    return _Minimiser(trials, base, NO_LIMIT, "free of deadlock").least(depths)


class _Minimiser:
    """Makes depths with which a run ends within ``limit`` cycles as small as that allows."""

    def __init__(self, trials: _Trials, base: int, limit: int, phase: str):
        self.trials, self.base, self.limit, self.phase = trials, base, limit, phase
        self.depths: list[int] = []

    def least(self, depths: Sequence[int]) -> list[int]:
        """From depths that suffice to ones of which none can be one less."""
        self.depths = list(depths)
        self._clip()
        widths = [link.payload.data_bits for link in self.trials.graph.links]
        deeper = [i for i, depth in enumerate(self.depths) if depth > self.base]
        deeper.sort(key=lambda i: (-widths[i] * self.depths[i], i))
        self._settled, self._of = 0, len(deeper)
        self._lower(deeper)
        # Where order of arrival decides, less can be enough again once others have become smaller.
        while any([self._single(i) for i in deeper if self.depths[i] > self.base]):
            pass
        return self.depths

    def _suffices(self, depths: Sequence[int]) -> bool:
        return self.trials.run(depths, self.limit).total_cycles is not None

    def _try(self, depths: list[int]) -> bool:
        """Take ``depths`` if they suffice."""
        if not self._suffices(depths):
            return False
        self.depths = depths
        return True

    def _clip(self) -> None:
        """The least bound on all depths."""
        low, high = self.base - 1, max(self.depths, default=self.base)  # high suffices
        while high - low > 1:
            middle = self.base if low < self.base else (low + high) // 2
            if self._try([min(depth, middle) for depth in self.depths]):
                high = middle
            else:
                low = middle

    def _lower(self, group: Sequence[int]) -> None:
        """Bring the links of ``group`` down, together where they all go back to the default."""
        if not group or self._try(_with(self.depths, group, self.base)):
            self._settle(len(group))
        elif len(group) == 1:
            self._single(group[0])
            self._settle(1)
        else:
            half = len(group) // 2
            self._lower(group[:half])
            self._lower(group[half:])

    def _single(self, link: int) -> bool:
        """Bring one link down; whether it went."""
        before = high = self.depths[link]
        if not self._try(_with(self.depths, [link], high - 1)):
            return False
        low, high = self.base - 1, high - 1
        while high - low > 1:
            middle = (low + high) // 2
            if self._try(_with(self.depths, [link], middle)):
                high = middle
            else:
                low = middle
        return self.depths[link] < before

    def _settle(self, links: int) -> None:
        self._settled += links
        self.trials.report(self.phase, self._settled, self._of, self.trials.runs)


def _with(depths: Sequence[int], links: Sequence[int], depth: int) -> list[int]:
    changed = list(depths)
    for i in links:
        changed[i] = depth
    return changed
