"""Model of ``step_hw/units/reassemble.py``."""

from step_lang.errorcodes import ErrorCode

from ..compiled import compiled
from ..network import (
    BLOCKED,
    BUSY,
    EMPTY,
    STARVED,
    can_pop,
    can_push,
    fail,
    is_done,
    peek,
    peek_value,
    pop,
    push,
    stop_of,
    with_stop,
)
from ..selectors import selects_beyond, selects_nothing
from ..turns import (
    CURRENT,
    FIRST_IN_TURN,
    LOCKED,
    SENT,
    clear_served,
    completes,
    in_turn,
    note_served,
    served,
    wanted,
)
from ._arbiter import grant, waits

KIND = "reassemble"
STEERED_BY = (-1,)
ARBITRATES = True

RANK, HOLLOW, N, WIDTH = 0, 1, 2, 3
MISALIGNED, STOP_RANGE = ErrorCode.MISALIGNED, ErrorCode.STOP_RANGE
PROTOCOL, SELECTOR = ErrorCode.PROTOCOL, ErrorCode.SELECTOR


def pack(unit, graph, build):
    """Parameters: rank, hollow."""
    par = build.par[unit.index]
    par[RANK] = unit.config["rank"]
    par[HOLLOW] = unit.config["hollow"]
    par[N] = len(unit.inputs) - 1
    par[WIDTH] = graph.links[unit.inputs[-1]].payload.data_bits


def value_inputs(unit, graph, port):
    """Elements of every input pass."""
    return range(len(unit.inputs) - 1)


@compiled
def step(u, par, st, ins, outs, net):
    """A beat of the input that is served, a bare stop, or the end."""
    n = par[N]
    link = ins[n]
    if not can_pop(net, link):
        return STARVED
    tok = peek(net, link)
    value = peek_value(net, link)
    if is_done(tok):
        return _end(u, par, st, ins, outs, net)
    closing = par[RANK] + 1 + stop_of(tok)
    bare = tok & EMPTY != 0
    if not bare and selects_beyond(net, value, par[WIDTH], n):
        return fail(net, u, SELECTOR)
    if bare or selects_nothing(net, value, par[WIDTH], n):
        if not bare and par[HOLLOW] == 0:
            return fail(net, u, SELECTOR)
        if closing > 15:
            return fail(net, u, STOP_RANGE)
        if not can_push(net, outs[0]):
            return BLOCKED
        push(net, outs[0], EMPTY | closing, 0)
        pop(net, link)
        return BUSY

    if st[LOCKED] == 0:
        chosen = -1
        for distance in range(n):
            k = in_turn(st, n, distance)
            if not wanted(net, st, value, par[WIDTH], k):
                continue
            if chosen < 0 and waits(net, ins[k]):
                chosen = k
            elif can_pop(net, ins[k]) and is_done(peek(net, ins[k])):
                return fail(net, u, MISALIGNED)
        if chosen < 0:
            return STARVED
        grant(u, st, net, n, chosen)
    k = st[CURRENT]
    if not can_pop(net, ins[k]):
        return STARVED
    head = peek(net, ins[k])
    if is_done(head):
        return fail(net, u, PROTOCOL)
    stop = stop_of(head)
    if stop > par[RANK]:
        return fail(net, u, STOP_RANGE)
    ends = stop == par[RANK]
    last = ends and completes(net, st, value, par[WIDTH], n, k)
    if last and closing > 15:
        return fail(net, u, STOP_RANGE)
    if not can_push(net, outs[0]):
        return BLOCKED
    push(net, outs[0], with_stop(head, closing) if last else head, peek_value(net, ins[k]))
    pop(net, ins[k])
    if ends:
        st[LOCKED] = 0
        note_served(st, k)
    if last:
        clear_served(st, n)
        pop(net, link)
    return BUSY


@compiled
def _end(u, par, st, ins, outs, net):
    """Done leaves at once; every input's is taken when it comes."""
    moved = False
    if st[SENT] == 0 and can_push(net, outs[0]):
        push(net, outs[0], peek(net, ins[par[N]]), 0)
        st[SENT] = 1
        moved = True
    over = st[SENT] == 1
    for k in range(par[N]):
        if served(st, k):
            continue
        if not can_pop(net, ins[k]):
            over = False
        elif is_done(peek(net, ins[k])):
            pop(net, ins[k])
            note_served(st, k)
            moved = True
        else:
            fail(net, u, MISALIGNED)
            over = False
    if over:
        clear_served(st, par[N])
        st[SENT], st[FIRST_IN_TURN] = 0, 0
        pop(net, ins[par[N]])
    if moved or over:
        return BUSY
    return BLOCKED if st[SENT] == 0 else STARVED
