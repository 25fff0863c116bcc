"""Model of ``step_hw/units/map.py``."""

from ..compiled import compiled
from ..network import BLOCKED, BUSY, STARVED, can_push, push
from ._compute import FRONT_MISALIGNED, FRONT_STARVED, LAST_STEP, MISALIGNED, OWN, STAGES, fail, front, pack_front, take

KIND = "map"

PIPE = OWN


def pack(unit, graph, build):
    """Join and pipeline as ``unit.params`` says."""
    pack_front(unit, build)


@compiled
def step(u, par, st, ins, outs, net):
    """A pipeline that advances as a whole; it stalls when its last stage holds a beat that the output does not take."""
    entry = front(par, st, ins, net)
    if entry == FRONT_MISALIGNED:
        fail(u, net, MISALIGNED)
        entry = FRONT_STARVED
    last = PIPE + par[STAGES] - 1
    if st[last] != 0 and not can_push(net, outs[0]):
        return BLOCKED
    busy = False
    if st[last] != 0:
        push(net, outs[0], (st[last] - 1) >> 1, 0)
        busy = True
    for i in range(last, PIPE, -1):
        st[i] = st[i - 1]
        busy |= st[i] != 0
    st[PIPE] = 0
    if entry != FRONT_STARVED:
        take(par, st, ins, net, entry)
        if (entry - 1) & LAST_STEP:
            st[PIPE] = entry
        busy = True
    return BUSY if busy else STARVED
