"""Deadlocks that can be told from the unit graph alone, before anything runs.

**Fork-joins.** Two branches of a fork meet again where both are needed. One needs ``k`` elements before it gives its
first (a fold over k), the other can hold fewer meanwhile: the fork cannot give the first branch what it waits for.
Counted in beats of the fork, backwards from the join: how many each branch needs for its first beat there, and how many
it can take while the join takes none, links, pipeline registers, states and scratchpads included. The fork itself holds
one that one branch has taken and the other has not.

**Loops.** A loop in which every unit waits for the loop has no token to start with. One that a `reassemble` or
`eager_merge` can start from elsewhere must have room for the chunk that it lets in.

What is not seen: branches through routers (how many elements go where is data), several chunks in a loop at a time,
full scratchpads, a second round that needs more than the first, units this page has no rule for. Folds over ragged
dimensions are told as what they are: deadlocks from a certain size on. `step-hw size-fifos` and the model see all of it
for the sizes of a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import networkx as nx
import sympy

from .program import Program
from .timing import compute_timing
from .unitgraph import LinkSpec, UnitGraph, UnitSpec

__all__ = ["Finding", "check_deadlock"]

Count = Any
"""Beats: an int, a SymPy expression of ragged dimensions, or None where nothing is known."""

_JOINS = ("map", "accum", "scan", "zip", "expand", "streamify", "partition")
"""Units that need a beat of every input before their first output."""

_MERGES = ("reassemble", "eager_merge")
_ROUTERS = (*_MERGES, "partition")

_TRANSPARENT = ("map", "scan", "zip", "fork", "random_load", "flatten", "promote", "reshape")
"""An output for every input, up to what they hold."""


@dataclass(frozen=True)
class Finding:
    """certain : it deadlocks, whatever the data; else from some size of a ragged dimension on
    place : unit of the join or loop, with operator and line; text : what disagrees; fix : what to do
    """

    certain: bool
    place: str
    text: str
    fix: str

    def __str__(self) -> str:
        return f"{self.place}: {self.text}; fix: {self.fix}"


def check_deadlock(program: Program, graph: UnitGraph) -> list[Finding]:
    """Findings in ``graph``, mapped from the lowered ``program``, in order of its units."""
    checked = _Check(program, graph)
    return checked.fork_joins() + checked.loops()


class _Check:
    def __init__(self, program: Program, graph: UnitGraph):
        self.graph = graph
        self.shapes: Mapping[str, tuple] = {stream.name: tuple(stream.shape) for stream in program.streams}
        self.fed_back = {op.output.name: op.output for op in program.operators if op.breaks_cycle}
        self.loop_links = [link for link in graph.links if link.stream in self.fed_back]
        cut = {link.index for link in self.loop_links}
        self.links = [link for link in graph.links if link.index not in cut and link.source and link.destination]
        order = nx.DiGraph()
        order.add_nodes_from(range(len(graph.units)))
        order.add_edges_from((_from(link), _to(link)) for link in self.links)
        self.order = list(nx.lexicographical_topological_sort(order))
        self.reach = order

    # Fork-joins

    def fork_joins(self) -> list[Finding]:
        found = []
        forks = [unit for unit in self.graph.units if unit.kind == "fork"]
        for join in self.graph.units:
            ports = [self.graph.links[i] for i in join.inputs]
            if join.kind not in _JOINS or len(ports) < 2 or not forks:
                continue
            needs = [self._needs(link) for link in ports]
            rooms = [self._rooms(link) for link in ports]
            for a, need in enumerate(needs):
                for b, room in enumerate(rooms):
                    hits = [] if a == b else [hit for fork in forks for hit in self._under(fork, need, room)]
                    if hits:
                        found.append(self._fork_join(join, ports[a], ports[b], self._nearest(hits)))
        return found

    def _under(self, fork: UnitSpec, need: Mapping[int, Count], room: Mapping[int, Count]) -> Iterable[tuple]:
        """(fork, link towards the one that waits, link towards the one that must hold, beats needed, beats held)."""
        for p in fork.outputs:
            for q in fork.outputs:
                if p == q or need.get(p) is None or room.get(q) is None:
                    continue
                if isinstance(need[p], int) and isinstance(room[q], int):
                    if need[p] - 1 > room[q]:
                        yield fork, p, q, need[p], room[q]
                elif isinstance(room[q], int):
                    yield fork, p, q, need[p], room[q]

    def _nearest(self, hits: list[tuple]) -> tuple:
        """The one whose fork lies behind the others': those only feed it."""
        return next(hit for hit in hits if not any(
            other[0] is not hit[0] and nx.has_path(self.reach, hit[0].index, other[0].index) for other in hits))

    def _fork_join(self, join: UnitSpec, slow: LinkSpec, fast: LinkSpec, hit: tuple) -> Finding:
        fork, _, q, need, room = hit
        branch = self.graph.links[q]
        certain = isinstance(need, int)
        where = f"{room} beats of '{self.graph.links[fork.inputs[0]].name}', and the fork one more"
        if certain:
            text = (f"'{slow.name}' takes {need} before its first element vs the branch through '{branch.name}', which "
                    f"holds {where}: deadlock")
            fix = (f"give {branch.name} {branch.depth + need - 1 - room} beats in [link.depths], or run "
                   "step-hw size-fifos")
        else:
            text = (f"'{slow.name}' takes {need} before its first element, known at run time only, vs the branch "
                    f"through '{branch.name}', which holds {where}: deadlock where {need} is more than {room + 1}")
            fix = f"give {branch.name} enough beats in [link.depths]: step-hw size-fifos finds how many for a run"
        return Finding(certain, _place(join), text, fix)

    def _needs(self, link: LinkSpec) -> dict[int, Count]:
        """For every link before ``link``: beats that must have passed it before one comes out of ``link``."""
        found: dict[int, Count] = {link.index: 1}
        for unit in self._before(link):
            wanted = [(port, found[i]) for port, i in enumerate(unit.outputs) if i in found]
            for port, i in enumerate(unit.inputs) if wanted else ():
                counts = [None if m is None else self._inputs_for(unit, port, m) for _, m in wanted]
                found[i] = None if None in counts else _most(counts)
        return found

    def _rooms(self, link: LinkSpec, routed: bool = False) -> dict[int, Count]:
        """For every link before ``link``: beats that it and what lies behind it hold while nobody takes any from
        ``link``. ``routed``: of those that routers send this way."""
        found: dict[int, Count] = {link.index: link.depth}
        for unit in self._before(link):
            behind = [found[i] for i in unit.outputs if found.get(i) is not None]
            for port, i in enumerate(unit.inputs) if behind else ():
                if routed and unit.kind in _ROUTERS and port < len(unit.inputs) - (unit.kind != "eager_merge"):
                    taken = behind
                else:
                    taken = [self._taken_for(unit, port, c) for c in behind]
                known = [count for count in taken if count is not None]
                found[i] = None if not known else self.graph.links[i].depth + _least(known)
        return found

    def _before(self, link: LinkSpec) -> Iterable[UnitSpec]:
        """Units from which ``link`` can be reached, nearest first."""
        source = _from(link)
        reached = nx.ancestors(self.reach, source) | {source}
        return [self.graph.units[i] for i in reversed(self.order) if i in reached]

    # What units need and hold

    def _shape(self, link: int) -> tuple:
        return self.shapes.get(self.graph.links[link].stream, ())

    def _size(self, link: int, dims: slice) -> Count:
        return _product(self._shape(link)[dims])

    def _group(self, unit: UnitSpec, port: int) -> tuple[Count, Count] | None:
        """(inputs, outputs) of a piece of work of ``unit``, seen from its input ``port``."""
        kind, config = unit.kind, unit.config
        if kind in _TRANSPARENT:
            return 1, 1
        if kind == "repeat":
            return 1, config["n"]
        if kind == "accum":
            inner = _product(_last(self._shape(unit.inputs[port]), config["inner"]))
            return _product(_last(self._shape(unit.inputs[port]), config["rank"] + config["inner"])), inner
        if kind == "bufferize":
            return _product(_last(self._shape(unit.inputs[0]), config["rank"])), 1
        if kind == "streamify":
            whole = _product(_last(self._shape(unit.outputs[0]), config["n"]))
            if port:
                return 1, whole
            times = _product(_last(self._shape(unit.inputs[1]), config["c"])) if len(unit.inputs) > 1 else (
                config["repeat"])
            return 1, whole * times
        if kind == "expand":
            return (1, 1) if port else (1, _product(_last(self._shape(unit.inputs[1]), config["b"])))
        if kind == "load" and unit.inputs:
            return 1, _product(self._shape(unit.outputs[0])[len(self._shape(unit.inputs[0])):])
        return None

    def _inputs_for(self, unit: UnitSpec, port: int, m: Count) -> Count:
        """Beats of ``port`` without which ``unit`` does not give its first ``m``."""
        group = self._group(unit, port)
        if group is None:
            return None
        held = 0
        if unit.kind == "promote" and unit.config["rank"] == 0:
            held = 1  # any beat may be the last one
        elif unit.kind == "flatten" and unit.config["lo"] == 0 and unit.config["hi"] < unit.config["rank"]:
            inner = _product(_last(self._shape(unit.inputs[0]), 1))
            held = int(isinstance(inner, int) and isinstance(m, int) and inner > 0 and m % inner == 0)
        return group[0] * _ratio(m, group[1], up=True) + held

    def _taken_for(self, unit: UnitSpec, port: int, c: Count) -> Count:
        """Beats of ``port`` that ``unit`` takes at most when ``c`` of its outputs find room."""
        group = self._group(unit, port)
        if group is None:
            return None
        whole = group[0] * _ratio(c, group[1], up=False)
        if unit.kind == "bufferize":
            pad = self.graph.units[unit.params["scratchpad"]].params
            # The link behind it holds references, whose buffers must fit; what is behind that frees them.
            waiting = min(self.graph.links[unit.outputs[0]].depth, pad["references"])
            if not isinstance(group[0], int) or not isinstance(whole, int):
                return None
            return max(0, whole - waiting * group[0]) + min((waiting + 1) * group[0], pad["frames"])
        if unit.kind == "accum":
            return whole + group[0]  # a state, given away or not
        if unit.kind in ("map", "scan"):
            return whole + compute_timing(unit.kind, unit.params).latency
        if unit.kind in ("flatten", "promote"):
            return whole + 1
        if unit.kind in ("load", "random_load"):
            return _ratio(c + unit.params["window"], group[1], up=False)
        return whole

    # Loops

    def loops(self) -> list[Finding]:
        found = []
        every = nx.DiGraph()
        links = [link for link in self.graph.links if link.source and link.destination]
        every.add_edges_from((_from(link), _to(link)) for link in links)
        for members in sorted(map(sorted, nx.strongly_connected_components(every))):
            inside = [link for link in links if _from(link) in members and _to(link) in members]
            if not inside:
                continue
            # Take away what need not wait for the loop: what is left in a circle waits for itself.
            strict = nx.DiGraph()
            strict.add_edges_from((_from(link), _to(link)) for link in inside if not self._can_start(link, members))
            stuck = [list(cycle) for cycle in nx.strongly_connected_components(strict) if len(cycle) > 1]
            stuck += [[node] for node in strict if strict.has_edge(node, node)]
            names = sorted({link.stream for link in inside if link.stream in self.fed_back})
            label = f"loop through {' and '.join(repr(name) for name in names)}"
            if stuck:
                waiting = ", ".join(self.graph.units[i].name for i in sorted(min(stuck)))
                found.append(Finding(
                    True, self._loop_place(names), f"{label} without an initial token: {waiting} wait for one another "
                    "vs at least one unit that can begin without the loop",
                    "take the loop's first tokens from elsewhere (reassemble with a selector that names another stream "
                    "first)"))
                continue
            for link in inside:
                if self._can_start(link, members):
                    found += self._room(link, members, label, names)
        return found

    def _loop_place(self, names: list[str]) -> str:
        op = self.fed_back[names[0]].producer
        path, _, line = op.source.rpartition(":")
        return f"{op.kind} '{op.name}' ({path.replace(chr(92), '/').rsplit('/', 1)[-1]}:{line})"

    def _can_start(self, link: LinkSpec, members: list[int]) -> bool:
        """Whether the reader of ``link`` may give something before this input has anything."""
        assert link.destination is not None
        unit, port = self.graph.units[link.destination[0]], link.destination[1]
        data = len(unit.inputs) - (unit.kind == "reassemble")
        if unit.kind not in _MERGES or port >= data:
            return False
        sources = [self.graph.links[i].source for i in unit.inputs[:data]]
        return any(source is None or source[0] not in members for source in sources)

    def _room(self, link: LinkSpec, members: list[int], label: str, names: list[str]) -> list[Finding]:
        """Whether the way from the unit that lets a chunk in, round to ``link``, holds a chunk, and a gap: a ring that
        is full does not turn."""
        assert link.destination is not None
        merge = self.graph.units[link.destination[0]]
        out = self.graph.links[merge.outputs[0]]
        chunk = _product(_last(self._shape(link.index), merge.config["rank"]))
        room = self._rooms(link, routed=True).get(out.index)
        if not isinstance(chunk, int) or not isinstance(room, int) or room > chunk:
            return []
        return [Finding(
            True, _place(merge), f"{label}: chunks of {chunk} beats vs room for {room} from '{out.name}' to "
            f"'{link.name}': a loop that is full does not turn",
            f"give {link.name} {link.depth + chunk + 1 - room} beats in [link.depths], or run step-hw size-fifos")]


def _from(link: LinkSpec) -> int:
    assert link.source is not None
    return link.source[0]


def _to(link: LinkSpec) -> int:
    assert link.destination is not None
    return link.destination[0]


def _place(unit: UnitSpec) -> str:
    return f"{unit.kind} '{unit.name}'" + (f" of {unit.origin}" if unit.origin else "")


def _last(shape: tuple, n: int) -> tuple:
    return shape[len(shape) - n:] if n else ()


def _product(dims: Iterable[Any]) -> Count:
    total: Count = 1
    for dim in dims:
        total = total * dim
    return total


def _ratio(a: Count, b: Count, up: bool) -> Count:
    """a / b, rounded."""
    if isinstance(a, int) and isinstance(b, int):
        return (-(-a // b) if up else a // b) if b else 0
    rounded: Callable = sympy.ceiling if up else sympy.floor
    if up and a == 1:
        return 1  # of a dimension that is not 0
    return rounded(sympy.sympify(a) / b)


def _most(counts: list[Count]) -> Count:
    return max(counts) if all(isinstance(c, int) for c in counts) else sympy.Max(*counts)


def _least(counts: list[Count]) -> Count:
    known = [c for c in counts if isinstance(c, int)]
    return min(known) if known else sympy.Min(*counts)
