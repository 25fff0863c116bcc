"""A bench's sink: accepts beats in the cycles of a repeating ready pattern until done; not hardware."""

import numpy as np

from ..compiled import compiled
from ..network import BUSY, IDLE, STARVED, can_pop, is_done, peek, pop

KIND = "sink"

LENGTH, OFFSET, RUNS = 0, 1, 2
FINISHED, SEEN = 0, 1


def pack(unit, graph, build):
    """``unit.params``: ``pattern`` (list of 0/1, one per cycle, repeating), ``runs`` (done tokens to wait for, 1)."""
    pattern = np.asarray(unit.params.get("pattern", [1]), dtype=np.int64)
    build.par[unit.index, LENGTH] = len(pattern)
    build.par[unit.index, OFFSET] = build.reserve(len(pattern), pattern)
    build.par[unit.index, RUNS] = unit.params.get("runs", 1)


@compiled
def step(u, par, st, ins, outs, net):
    """Ready as the pattern says."""
    if net.heap[par[OFFSET] + net.misc[0] % par[LENGTH]] == 0:
        net.misc[2] += 1
        return IDLE
    if not can_pop(net, ins[0]):
        return STARVED
    if is_done(peek(net, ins[0])):
        st[SEEN] += 1
        if st[SEEN] >= par[RUNS]:
            st[FINISHED] = 1
    pop(net, ins[0])
    return BUSY
