"""Model of ``step_hw/units/accum.py``."""

from ..compiled import compiled
from ..network import BLOCKED, BUSY, DONE, EMPTY, STARVED, can_push, is_bare, is_done, push, stop_of
from ._compute import (
    FRONT_MISALIGNED,
    FRONT_STARVED,
    LAST_STEP,
    MISALIGNED,
    OWN,
    STAGES,
    fail,
    front,
    pack_front,
    take,
)
from ._fold import (
    I0,
    I1,
    INDEX,
    INNER,
    RANK,
    ROWS,
    ROWS_FULL,
    STARTED,
    advance,
    check,
    pack_fold,
    position_stop,
)

KIND = "accum"

# Own state, behind that of ``_fold``.
DRAINING, DRAIN_DONE, DRAIN_INIT, DRAIN_STOP, D_INDEX, D_I1, D_I0, PIPE = range(OWN + 4, OWN + 12)


def pack(unit, graph, build):
    """Join, pipeline, sizes of the state."""
    pack_front(unit, build)
    pack_fold(unit, build)


@compiled
def step(u, par, st, ins, outs, net):
    """Contribution pipeline, read-modify-write, drain; see the RTL for the rules."""
    entry = front(par, st, ins, net)
    stages = par[STAGES]
    at_state = st[PIPE + stages - 1] if stages > 0 else (0 if entry < 0 else entry)
    ready = can_push(net, outs[0])

    # What the drain stands at before this cycle.
    draining = st[DRAINING] != 0
    drain_index = st[D_INDEX]
    drain_last = st[DRAIN_DONE] != 0 or position_stop(par, st, D_I1, D_I0) == 2
    free = not draining or (drain_last and ready)

    go = True
    code = 0
    tok = 0
    last_step = False
    if at_state != 0:
        tok = (at_state - 1) >> 1
        last_step = (at_state - 1) & LAST_STEP != 0
        code = check(par, st, tok)
        closing = stop_of(tok) >= par[RANK] + par[INNER]
        if is_done(tok):
            go = free
        elif is_bare(tok):
            go = free or not closing
        else:
            go = not draining or drain_index > st[INDEX] or (drain_index == st[INDEX] and ready)
        go = go and code == 0
    if entry == FRONT_MISALIGNED:
        code = code if code != 0 else MISALIGNED
    if code != 0:
        fail(u, net, code)
        go = False
        entry = FRONT_STARVED

    busy = False
    # The drain emits.
    if draining and ready:
        busy = True
        if st[DRAIN_DONE] != 0:
            push(net, outs[0], EMPTY | DONE, 0)
        else:
            ends = position_stop(par, st, D_I1, D_I0)
            stop = st[DRAIN_STOP] if ends == 2 else min(ends, par[INNER])
            rows = par[ROWS_FULL] if st[DRAIN_INIT] != 0 else net.heap[par[ROWS] + drain_index]
            push(net, outs[0], stop | rows << 6, 0)
            advance(par, st, D_INDEX, D_I1, D_I0)
        if drain_last:
            st[DRAINING] = 0

    # Read-modify-write.
    if at_state != 0 and go:
        busy = True
        element = not is_done(tok) and not is_bare(tok)
        complete_tensor = element and last_step and position_stop(par, st, I1, I0) == 2
        if element:
            net.heap[par[ROWS] + st[INDEX]] = par[ROWS_FULL] if par[ROWS_FULL] == 1 else tok >> 6
        if last_step and (is_done(tok) or (closing and (complete_tensor or not element))):
            st[DRAINING] = 1
            st[DRAIN_DONE] = 1 if is_done(tok) else 0
            st[DRAIN_INIT] = 1 if not element and st[STARTED] == 0 else 0
            st[DRAIN_STOP] = stop_of(tok) - par[RANK]
            st[STARTED] = 0
        elif complete_tensor:
            st[STARTED] = 1
        if element and last_step:
            advance(par, st, INDEX, I1, I0)

    # The pipeline advances unless the token at the state waits.
    if at_state != 0 and not go:
        return BUSY if busy else BLOCKED
    if stages > 0:
        for i in range(PIPE + stages - 1, PIPE, -1):
            st[i] = st[i - 1]
            busy |= st[i] != 0
        st[PIPE] = 0 if entry == FRONT_STARVED else entry
    if entry != FRONT_STARVED:
        take(par, st, ins, net, entry)
        busy = True
    if busy:
        return BUSY
    return BLOCKED if draining else STARVED
