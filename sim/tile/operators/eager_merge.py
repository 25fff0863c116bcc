"""eager_merge: whole chunks in the order in which they arrive, and the name of each one's source."""

from step_lang.errorcodes import ErrorCode

from ...compiled import compiled
from ...selectors import pack_selectors
from ..cost import TILE, beats, finish, leaves, leaves_last, meets, starts, work_of
from ..network import (
    COLS,
    DONE,
    EMPTY,
    LAST,
    ROWS,
    TOKEN,
    VALUE,
    announced,
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

KIND = "eager_merge"
ARBITRATES = True
RANK, N, TABLE = range(3)
LOCKED, CURRENT, FIRST_IN_TURN, NAMED = range(4)
STOP_RANGE, PROTOCOL = ErrorCode.STOP_RANGE, ErrorCode.PROTOCOL


def pack(op, unit, build):
    """Rank; the control value of each input's one-hot selector."""
    par, n = build.par[unit], len(op.inputs)
    par[[RANK, N]] = op.rank, n
    par[TABLE] = build.reserve(n, pack_selectors(build, [1 << k for k in range(n)], n))


@compiled
def step(u, par, st, ins, outs, net, now):
    """A token of the input that is served; its name beside the first of a chunk."""
    n = par[N]
    if st[LOCKED] == 0:
        ended = True
        chosen = -1
        for distance in range(n):
            k = st[FIRST_IN_TURN] + distance
            if k >= n:
                k -= n
            if not announced(net, u, ins[k], now):
                ended = False
            elif not available(net, u, ins[k], now) or not is_done(field(net, ins[k], TOKEN)):
                ended = False
                if chosen < 0:
                    chosen = k
        if ended:
            if not room(net, u, outs[0], now) or not room(net, u, outs[1], now):
                return False
            end = finish(net, u, now, now, 1)
            push(net, outs[0], EMPTY | DONE, 0, 0, 0, end + 1, end + 1)
            push(net, outs[1], EMPTY | DONE, 0, 0, 0, end + 1, end + 1)
            for k in range(n):
                pop(net, ins[k], end + 1)
            return True
        if chosen < 0:
            return False
        record_grant(net, u, chosen, now)
        st[LOCKED], st[CURRENT], st[NAMED] = 1, chosen, 0
        st[FIRST_IN_TURN] = 0 if chosen + 1 == n else chosen + 1
    k = st[CURRENT]
    if st[NAMED] == 0 and room(net, u, outs[1], now):
        push(net, outs[1], 0, net.heap[par[TABLE] + k], 1, 1, now + 1, now + 1)
        st[NAMED] = 1
    if not available(net, u, ins[k], now):
        return False
    token = field(net, ins[k], TOKEN)
    if is_done(token):
        return fail(net, u, PROTOCOL)
    if stop_of(token) > par[RANK]:
        return fail(net, u, STOP_RANGE)
    ends = stop_of(token) == par[RANK]
    if not room(net, u, outs[0], now) or (ends and st[NAMED] == 0):
        return False
    rows, cols = field(net, ins[k], ROWS), field(net, ins[k], COLS)
    count = beats(net, u, rows, cols) if net.cost[u, TILE] > 0 and token & EMPTY == 0 else 1
    start = meets(net, u, ins[k], 0, starts(net, u, outs[0]))
    end = finish(net, u, start, field(net, ins[k], LAST), work_of(net, u, 0, 0, count))
    push(net, outs[0], token, field(net, ins[k], VALUE), rows, cols, leaves(net, u, start, end),
         leaves_last(net, u, end))
    pop(net, ins[k], end + 1)
    if ends:
        st[LOCKED] = 0
    return True
