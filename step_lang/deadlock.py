"""A deadlock told as the cycle of links that wait for one another, for RTL and model alike."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import networkx as nx

from .unitgraph import UnitGraph, UnitSpec

__all__ = ["Wait", "deadlock_report", "waiting_cycle"]


@dataclass(frozen=True)
class Wait:
    """``waiter`` cannot go on before ``holder`` moves, because of ``link``, which is "empty" or "full".

    fill, depth : beats in the link and its depth; both 0 for a wait for room in a scratchpad, which ``link`` names
    """

    waiter: str
    holder: str
    link: str
    why: str
    fill: int
    depth: int

    @property
    def on_scratchpad(self) -> bool:
        """Whether it is no link that is full but a scratchpad."""
        return self.why == "full" and not self.depth

    def __str__(self) -> str:
        if self.on_scratchpad:
            return f"{self.waiter} finds no room in {self.link}, waits for {self.holder}"
        action = "reads from" if self.why == "empty" else "writes to"
        return f"{self.waiter} {action} {self.link} ({self.fill}/{self.depth}, {self.why}), waits for {self.holder}"


def _waits(graph: UnitGraph, fill: Sequence[int], exhausted: Mapping[int, str] | None) -> nx.MultiDiGraph:
    waits = nx.MultiDiGraph()
    for link in graph.links:
        if link.source is None or link.destination is None:
            continue
        source, destination = graph.units[link.source[0]], graph.units[link.destination[0]]
        if fill[link.index] == 0:
            edge, why = (destination, source), "empty"
        elif fill[link.index] >= link.depth:
            edge, why = (source, destination), "full"
        else:
            continue
        wait = Wait(edge[0].name, edge[1].name, link.name, why, int(fill[link.index]), link.depth)
        waits.add_edge(edge[0].index, edge[1].index, wait=wait)
    # References come from a bufferize and frames come back from its streamify: a wait that no link shows.
    for unit in graph.units:
        if unit.kind == "streamify":
            pads = _pads(unit)
            for other in graph.units:
                # One without input waits for its input, whatever its scratchpad holds.
                if other.kind == "bufferize" and other.params["scratchpad"] in pads and fill[other.inputs[0]] and (
                    exhausted is None or (other.index in exhausted and _holds(graph, unit, fill))
                ):
                    waits.add_edge(
                        other.index, unit.index, wait=Wait(
                            other.name, unit.name, graph.units[other.params["scratchpad"]].name, "full", 0, 0))
    return waits


def _pads(streamify: UnitSpec) -> list[int]:
    """Scratchpads that a streamify reads."""
    return [pad for pad, _ in streamify.params["ports"]]


def _holds(graph: UnitGraph, streamify: UnitSpec, fill: Sequence[int]) -> bool:
    """Whether a streamify has a reference to read, or no reader of its scratchpads has."""
    pads = _pads(streamify)
    readers = [unit for unit in graph.units if unit.kind == "streamify" and _pads(unit) == pads]
    return fill[streamify.inputs[0]] > 0 or not any(fill[reader.inputs[0]] for reader in readers)


def waiting_cycle(graph: UnitGraph, fill: Sequence[int], exhausted: Mapping[int, str] | None = None) -> list[Wait]:
    """The shortest cycle of waits that holds at least one full link; [] if there is none.

    ``fill``: beats in each link, by index. ``exhausted``: what each bufferize that finds no room lacks, by unit index;
    None where that is not known. A cycle through a scratchpad comes second, since it may be full because of a cycle of
    links. A cycle of empty links alone is a loop without an initial token and is returned when no other exists.
    """
    waits = _waits(graph, fill, exhausted)
    plain = nx.DiGraph(waits)
    best: tuple[tuple[bool, bool, int, list[int]], list[Wait]] | None = None
    for a, b, wait in waits.edges(data="wait"):  # the shortest way back from each wait's holder closes a cycle
        try:
            back = nx.shortest_path(plain, b, a)
        except nx.NetworkXNoPath:
            continue
        steps = [wait]
        for c, d in pairwise(back):
            options = [data["wait"] for data in waits.get_edge_data(c, d).values()]
            steps.append(min(options, key=lambda w: (w.why != "full", w.on_scratchpad, w.link)))
        key = (not any(w.why == "full" for w in steps), any(w.on_scratchpad for w in steps), len(steps), [a, *back])
        if best is None or key < best[0]:
            best = (key, steps)
    return best[1] if best else []


def deadlock_report(graph: UnitGraph, fill: Sequence[int], exhausted: Mapping[int, str] | None = None) -> str:
    """One line for the cause, one per wait, and one for the fix; where it is a scratchpad, one for each that has no
    room. Arguments as of `waiting_cycle`."""
    cycle = waiting_cycle(graph, fill, exhausted)
    if not cycle:
        stuck = [f"{link.name} ({fill[link.index]}/{link.depth})" for link in graph.links if fill[link.index]]
        return "deadlock: no unit moves, beats wait on " + (
            ", ".join(stuck) if stuck else "no link: a stream never ended"
        )
    by_exhaustion = bool(exhausted) and any(wait.on_scratchpad for wait in cycle)
    lines = [f"deadlock{' by exhaustion' if by_exhaustion else ''}: {len(cycle)} units wait for one another"]
    if by_exhaustion and exhausted:
        lines += [f"  {lack}" for lack in exhausted.values()]
    lines += [f"  {wait}" for wait in cycle]
    full = [wait for wait in cycle if wait.why == "full"]
    if not full:
        lines.append("  fix: the loop needs an initial token")
    elif full[0].on_scratchpad or by_exhaustion:
        lines.append("  fix: raise scratchpad.frames or scratchpad.references in the hardware configuration")
    else:
        lines.append(
            f"  fix: give {full[0].link} more than {full[0].depth} beats in [link.depths]; "
            "step-hw size-fifos finds the depths"
        )
    return "\n".join(lines)
