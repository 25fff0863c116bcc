"""What a unit bench is asked and what it answers: plain data that travels between pytest and the simulator."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from .beats import Beat
from .patterns import Pattern

__all__ = ["Case", "CaseResult"]


@dataclass
class Case:
    """One run of a unit.

    Parameters
    ----------
    name:
        For messages.
    inputs:
        Beats to drive into each input port; several done-terminated streams may follow one another.
    expected:
        Beats that each output port must give; a port that is left out (or None) is recorded and not compared.
    cfg:
        Configuration registers.
    drive, sink:
        `Pattern` of all input or output ports, or one per port. Default: always.
    reset:
        Reset before this case. Without, the unit goes on as the case before left it (cfg may change).
    unordered:
        Output ports whose beats are compared as a multiset.
    error:
        Sticky error code that the unit must raise; the run ends when it does. What came out until then must begin
        the expected beats.
    max_rank:
        Highest stop level of each output port, for the protocol check.
    quiet:
        Cycles without any transfer that count as stuck (or, where no expectation is given, as the end).
    tail:
        Cycles that the run goes on after the last expected beat, to see beats that nobody expects.
    max_cycles:
        Upper bound of the run; default: generous, from the number of beats.
    extra:
        For the further agents of a unit with more ports than links (`bench.bench_unit`); anything that pickles.
    seed:
        Of the patterns; default: from the bench's seed and the case's name.
    """

    name: str
    inputs: Mapping[str, Sequence[Beat]] = field(default_factory=dict)
    expected: Mapping[str, Sequence[Beat] | None] = field(default_factory=dict)
    cfg: Mapping[str, int] = field(default_factory=dict)
    drive: Pattern | Mapping[str, Pattern] | None = None
    sink: Pattern | Mapping[str, Pattern] | None = None
    reset: bool = True
    unordered: Sequence[str] = ()
    error: int = 0
    max_rank: Mapping[str, int] = field(default_factory=dict)
    quiet: int = 400
    tail: int = 8
    max_cycles: int | None = None
    extra: object = None
    seed: int | str | None = None


@dataclass
class CaseResult:
    """What one case measured.

    ``beats`` and ``stamps``: transfers of every port, inputs too, with their cycles (cycle 0 is the first after
    reset, or the first of a case that does not reset). ``blocked``: cycles of valid without ready; ``starved``
    (outputs): cycles without valid. ``notes``: what the case's further agents left (`bench.bench_unit`).
    ``problem``: None, or what went wrong.
    """

    name: str
    beats: dict[str, list[Beat]]
    stamps: dict[str, list[int]]
    blocked: dict[str, int]
    starved: dict[str, int]
    cycles: int
    error: int
    state: int
    notes: list
    problem: str | None

    def latency(self, source: str, destination: str, pairs: Sequence[tuple[int, int]] | None = None) -> list[int]:
        """Cycles from a transfer of port ``source`` to that of ``destination`` at the same position.

        ``pairs`` of positions (source, destination) say which belong together where that is not so.
        """
        begin, end = self.stamps[source], self.stamps[destination]
        if pairs is None:
            pairs = [(i, i) for i in range(min(len(begin), len(end)))]
        return [end[j] - begin[i] for i, j in pairs]

    def interval(self, port: str) -> list[int]:
        """Cycles between consecutive transfers of ``port``."""
        return [after - before for before, after in pairwise(self.stamps[port])]
