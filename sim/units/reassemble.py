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
    is_done,
    peek,
    peek_value,
    pop,
    push,
    stop_of,
    with_stop,
)
from ..selectors import selected, selects_beyond
from ._arbiter import CURRENT, FIRST, LOCKED, OWN, grant, waits

KIND = "reassemble"
STEERED_BY = (-1,)
ARBITRATES = True

RANK, HOLLOW, N, WIDTH = 0, 1, 2, 3
SENT, SERVED = OWN, OWN + 1  # SERVED: a word for each 32 inputs
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
def _served(st, k):
    return (st[SERVED + k // 32] >> (k % 32)) & 1 == 1


@compiled
def _clear(par, st):
    st[SENT] = 0
    for word in range(SERVED, SERVED + (par[N] + 31) // 32):
        st[word] = 0


@compiled
def _fail(u, net, code):
    net.misc[3] = u + 1
    net.misc[4] = code
    return BLOCKED


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
    nothing = True
    if not bare:
        if selects_beyond(net, value, par[WIDTH], n):
            return _fail(u, net, SELECTOR)
        for k in range(n):
            if selected(net, value, par[WIDTH], k):
                nothing = False
                break
    if nothing:
        if not bare and par[HOLLOW] == 0:
            return _fail(u, net, SELECTOR)
        if closing > 15:
            return _fail(u, net, STOP_RANGE)
        if not can_push(net, outs[0]):
            return BLOCKED
        push(net, outs[0], EMPTY | closing, 0)
        pop(net, link)
        return BUSY

    if st[LOCKED] == 0:
        chosen = -1
        for distance in range(n):
            k = st[FIRST] + distance
            if k >= n:
                k -= n
            if _served(st, k) or not selected(net, value, par[WIDTH], k):
                continue
            if chosen < 0 and waits(net, ins[k]):
                chosen = k
            elif can_pop(net, ins[k]) and is_done(peek(net, ins[k])):
                return _fail(u, net, MISALIGNED)
        if chosen < 0:
            return STARVED
        grant(u, st, net, n, chosen)
    k = st[CURRENT]
    if not can_pop(net, ins[k]):
        return STARVED
    head = peek(net, ins[k])
    if is_done(head):
        return _fail(u, net, PROTOCOL)
    stop = stop_of(head)
    if stop > par[RANK]:
        return _fail(u, net, STOP_RANGE)
    ends = stop == par[RANK]
    last = ends
    if ends:
        for j in range(n):
            if j != k and not _served(st, j) and selected(net, value, par[WIDTH], j):
                last = False
                break
    if last and closing > 15:
        return _fail(u, net, STOP_RANGE)
    if not can_push(net, outs[0]):
        return BLOCKED
    push(net, outs[0], with_stop(head, closing) if last else head, peek_value(net, ins[k]))
    pop(net, ins[k])
    if ends:
        st[LOCKED] = 0
        st[SERVED + k // 32] |= 1 << (k % 32)
    if last:
        _clear(par, st)
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
        if _served(st, k):
            continue
        if not can_pop(net, ins[k]):
            over = False
        elif is_done(peek(net, ins[k])):
            pop(net, ins[k])
            st[SERVED + k // 32] |= 1 << (k % 32)
            moved = True
        else:
            net.misc[3] = u + 1
            net.misc[4] = MISALIGNED
            over = False
    if over:
        _clear(par, st)
        st[FIRST] = 0
        pop(net, ins[par[N]])
    if moved or over:
        return BUSY
    return BLOCKED if st[SENT] == 0 else STARVED
