"""A bench's source: feeds a list of beats, with gaps; not hardware."""

import numpy as np

from ..compiled import compiled
from ..network import BLOCKED, BUSY, IDLE, can_push, push
from ..selectors import pack_selectors

KIND = "source"

COUNT, OFFSET = 0, 1
POSITION = 1


def pack(unit, graph, build):
    """``unit.params["beats"]``: list of (earliest cycle, token, value); values of wide links go to the heap."""
    offers = unit.params["beats"]
    width = graph.links[unit.outputs[0]].payload.data_bits
    values = pack_selectors(build, [value for _, _, value in offers], width)
    beats = np.asarray([(*offer[:2], value) for offer, value in zip(offers, values)], dtype=np.int64).reshape(-1, 3)
    build.par[unit.index, COUNT] = len(beats)
    build.par[unit.index, OFFSET] = build.reserve(beats.size, beats.ravel())


@compiled
def step(u, par, st, ins, outs, net):
    """Offers the next beat from its earliest cycle on."""
    i = st[POSITION]
    if i >= par[COUNT]:
        return IDLE
    base = par[OFFSET] + 3 * i
    if net.misc[0] < net.heap[base]:
        net.misc[2] += 1  # waiting on purpose is not a deadlock
        return IDLE
    if not can_push(net, outs[0]):
        return BLOCKED
    push(net, outs[0], net.heap[base + 1], net.heap[base + 2])
    st[POSITION] = i + 1
    return BUSY
