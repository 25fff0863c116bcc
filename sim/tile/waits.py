"""What a run that stopped before its end waits for, told as a cycle of operators."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import networkx as nx

from .engine import TileRun
from .network import CAPACITY, COUNT, SINK, SOURCE

__all__ = ["waiting_report"]


def waiting_report(run: TileRun) -> str:
    """What operators wait for, "" where every store has ended and no channel holds anything."""
    net, graph = run.net, run.graph
    counts = net.channels[:, COUNT]
    sinks = [u for u, kind in enumerate(graph.kinds) if kind.endswith("offchip_store")]
    open_stores = [u for u in sinks if run.st[u, 0] == 0]
    if not counts.any() and not open_stores:
        return ""
    waits = nx.MultiDiGraph()
    for c, stream in enumerate(graph.channels):
        source, sink = int(net.channels[c, SOURCE]), int(net.channels[c, SINK])
        held, capacity = int(counts[c]), int(net.channels[c, CAPACITY])
        if held == 0:
            waits.add_edge(sink, source, text=f"{graph.names[sink]} reads from {graph.names[source]} (stream "
                                              f"'{stream.name}', 0/{capacity}, empty)", full=False, stream=stream)
        elif held == capacity:
            waits.add_edge(source, sink, text=f"{graph.names[source]} writes to {graph.names[sink]} (stream "
                                              f"'{stream.name}', {held}/{capacity}, full)", full=True, stream=stream)
    best: list[dict[str, Any]] = []
    plain = nx.DiGraph(waits)
    for a, b, full in waits.edges(data="full"):
        if not full:
            continue
        try:
            path = nx.shortest_path(plain, b, a)
        except nx.NetworkXNoPath:
            continue
        steps = [a, *path]
        if not best or len(steps) - 1 < len(best):
            best = [waits.get_edge_data(x, y)[0] for x, y in pairwise(steps)]
    if not best:
        for component in nx.strongly_connected_components(plain):
            if len(component) > 1:
                cycle = nx.find_cycle(plain.subgraph(component))
                best = [waits.get_edge_data(x, y)[0] for x, y in cycle]
                break
    waiting = ", ".join(graph.names[u] for u in open_stores) or "streams that nobody takes"
    if not best:
        left = [f"'{graph.channels[c].name}' holds {int(n)}" for c, n in enumerate(counts) if n]
        return f"the program stops before {waiting} ends: " + ("; ".join(left) or "every channel is empty")
    full_one = next((wait["stream"] for wait in best if wait["full"]), None)
    fix = ("the loop needs an initial token" if full_one is None else
           f"raise {graph.machine.capacity_key(full_one.type)}, by which a link of '{full_one.name}' holds "
           f"{graph.machine.capacity(full_one.type)} elements")
    lines = [*(wait["text"] for wait in best), f"fix: {fix}"]
    return f"the program stops before {waiting} ends; operators wait for one another:\n  " + "\n  ".join(lines)
