"""Model of ``step_hw/units/scan.py``."""

from ..compiled import compiled
from ..network import BLOCKED, BUSY, STARVED, can_push, fail, is_bare, is_done, push, stop_of
from ._compute import FRONT_MISALIGNED, FRONT_STARVED, LAST_STEP, MISALIGNED, STAGES, front, pack_front, take
from ._fold import (
    I0,
    I1,
    INDEX,
    INNER,
    OWN_FOLD,
    RANK,
    ROWS,
    STARTED,
    advance,
    check,
    pack_fold,
    position_stop,
)

KIND = "scan"

# Own state, behind that of ``_fold``: the output stage and the contribution pipeline.
OUT, PIPE = OWN_FOLD, OWN_FOLD + 1


def pack(unit, graph, build):
    """Join, pipeline, sizes of the state."""
    pack_front(unit, build)
    pack_fold(unit, build)


@compiled
def step(u, par, st, ins, outs, net):
    """Like accum up to the state; then one output stage, with which the pipeline advances as a whole."""
    entry = front(par, st, ins, net)
    stages = par[STAGES]
    at_state = st[PIPE + stages - 1] if stages > 0 else (0 if entry < 0 else entry)
    code = check(par, st, net, (at_state - 1) >> 1) if at_state != 0 else 0
    if code == 0 and entry == FRONT_MISALIGNED:
        code = MISALIGNED
    if code != 0:
        fail(net, u, code)
        at_state = 0
        entry = FRONT_STARVED
    if st[OUT] != 0 and not can_push(net, outs[0]):
        return BLOCKED
    busy = False
    if st[OUT] != 0:
        push(net, outs[0], (st[OUT] - 1) >> 1, 0)
        busy = True
    st[OUT] = 0
    if at_state != 0:
        busy = True
        tok = (at_state - 1) >> 1
        element = not is_done(tok) and not is_bare(tok)
        if element:
            net.heap[par[ROWS] + st[INDEX]] = tok >> 6
        if (at_state - 1) & LAST_STEP:
            st[OUT] = at_state
            ends = position_stop(par, st, I1, I0, False)
            if stop_of(tok) >= par[RANK] + par[INNER]:
                st[STARTED] = 0
            elif element and ends == 2:
                st[STARTED] = 1
            if element:
                advance(st, INDEX, I1, I0, ends)
    if stages > 0:
        for i in range(PIPE + stages - 1, PIPE, -1):
            st[i] = st[i - 1]
            busy |= st[i] != 0
        st[PIPE] = 0 if entry == FRONT_STARVED else entry
    if entry != FRONT_STARVED:
        take(par, st, ins, net, entry)
        busy = True
    return BUSY if busy else STARVED
