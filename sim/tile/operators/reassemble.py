"""reassemble: for each selector one chunk of every input that it names, in the order in which they arrive."""

from step_lang.errorcodes import ErrorCode

from ...compiled import compiled
from ...selectors import selected, selects_beyond
from ..cost import TILE, beats, finish, leaves, leaves_last, meets, starts, work_of
from ..network import (
    COLS,
    EMPTY,
    FIRST,
    LAST,
    NO_VALUE,
    ROWS,
    TOKEN,
    VALUE,
    available,
    fail,
    field,
    is_done,
    pop,
    push,
    record_grant,
    room,
    stop_of,
)
from . import UNKNOWN

KIND = "reassemble"
ARBITRATES = True
RANK, N, WIDTH, HOLLOW = range(4)
LOCKED, CURRENT, FIRST_IN_TURN, SENT, SERVED = range(5)   # SERVED: a word for each 32 inputs
MISALIGNED, SELECTOR, PROTOCOL, STOP_RANGE = (ErrorCode.MISALIGNED, ErrorCode.SELECTOR, ErrorCode.PROTOCOL,
                                              ErrorCode.STOP_RANGE)


def pack(op, unit, build):
    """Rank and inputs."""
    build.par[unit, [RANK, N, WIDTH, HOLLOW]] = op.rank, len(op.streams), op.selector.type.n, op.hollow


@compiled
def _served(st, k):
    return (st[SERVED + k // 32] >> (k % 32)) & 1 == 1


@compiled
def _clear(par, st):
    for word in range(SERVED, SERVED + (par[N] + 31) // 32):
        st[word] = 0


@compiled
def _end(u, par, st, ins, outs, net, now):
    """Done leaves with the selector's; every input's is taken when it comes."""
    n = par[N]
    moved = False
    if st[SENT] == 0:
        if not room(net, u, outs[0], now):
            return False
        push(net, outs[0], field(net, ins[n], TOKEN), 0, 0, 0, now + 1, now + 1)
        st[SENT] = 1
        moved = True
    over = True
    for k in range(n):
        if _served(st, k):
            continue
        if not available(net, u, ins[k], now):
            over = False
        elif is_done(field(net, ins[k], TOKEN)):
            pop(net, ins[k], now + 1)
            st[SERVED + k // 32] |= 1 << (k % 32)
            moved = True
        else:
            return fail(net, u, MISALIGNED)
    if over:
        _clear(par, st)
        st[SENT], st[FIRST_IN_TURN] = 0, 0
        pop(net, ins[n], now + 1)
    return moved or over


@compiled
def step(u, par, st, ins, outs, net, now):
    """A token of the input that is served, a bare stop, or the end."""
    n = par[N]
    if not available(net, u, ins[n], now):
        return False
    selector = field(net, ins[n], TOKEN)
    if is_done(selector):
        return _end(u, par, st, ins, outs, net, now)
    value = field(net, ins[n], VALUE)
    closing = par[RANK] + 1 + stop_of(selector)
    bare = selector & EMPTY != 0
    nothing = True
    if not bare:
        if value == NO_VALUE:
            return fail(net, u, UNKNOWN)
        if selects_beyond(net, value, par[WIDTH], n):
            return fail(net, u, SELECTOR)
        for k in range(n):
            if selected(net, value, par[WIDTH], k):
                nothing = False
                break
    if nothing:
        if not bare and par[HOLLOW] == 0:
            return fail(net, u, SELECTOR)
        if not room(net, u, outs[0], now):
            return False
        end = finish(net, u, now, now, 1)
        push(net, outs[0], EMPTY | closing, 0, 0, 0, end + 1, end + 1)
        pop(net, ins[n], end + 1)
        return True
    if st[LOCKED] == 0:
        chosen = -1
        for distance in range(n):
            k = st[FIRST_IN_TURN] + distance
            if k >= n:
                k -= n
            if _served(st, k) or not selected(net, value, par[WIDTH], k):
                continue
            if available(net, u, ins[k], now):
                if is_done(field(net, ins[k], TOKEN)):
                    return fail(net, u, MISALIGNED)
                if chosen < 0:
                    chosen = k
        if chosen < 0:
            return False
        record_grant(net, u, chosen, now)
        st[LOCKED], st[CURRENT] = 1, chosen
        st[FIRST_IN_TURN] = 0 if chosen + 1 == n else chosen + 1
    k = st[CURRENT]
    if not available(net, u, ins[k], now) or not room(net, u, outs[0], now):
        return False
    token = field(net, ins[k], TOKEN)
    if is_done(token):
        return fail(net, u, PROTOCOL)
    stop = stop_of(token)
    if stop > par[RANK]:
        return fail(net, u, STOP_RANGE)
    ends = stop == par[RANK]
    last = ends
    if ends:
        for j in range(n):
            if j != k and not _served(st, j) and selected(net, value, par[WIDTH], j):
                last = False
                break
    rows, cols = field(net, ins[k], ROWS), field(net, ins[k], COLS)
    count = beats(net, u, rows, cols) if net.cost[u, TILE] > 0 and token & EMPTY == 0 else 1
    start = max(meets(net, u, ins[k], 0, starts(net, u, outs[0])), field(net, ins[n], FIRST))
    end = finish(net, u, start, field(net, ins[k], LAST), work_of(net, u, 0, 0, count))
    push(net, outs[0], (token & ~15) | closing if last else token, field(net, ins[k], VALUE), rows, cols,
         leaves(net, u, start, end), leaves_last(net, u, end))
    pop(net, ins[k], end + 1)
    if ends:
        st[LOCKED] = 0
        st[SERVED + k // 32] |= 1 << (k % 32)
    if last:
        _clear(par, st)
        pop(net, ins[n], end + 1)
    return True
