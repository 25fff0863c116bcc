"""eager_merge: whole chunks in the order in which they arrive, and the name of each one's source."""

from step_lang.errorcodes import ErrorCode

from ...compiled import compiled
from ...selectors import pack_selectors
from ...turns import CURRENT, LOCKED, OWN, in_turn, serve
from ..cost import give_bare, meets, pass_beats, starts
from ..network import (
    DONE,
    EMPTY,
    TOKEN,
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
NAMED = OWN
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
            k = in_turn(st, n, distance)
            if not announced(net, u, ins[k], now):
                ended = False
            elif not available(net, u, ins[k], now) or not is_done(field(net, ins[k], TOKEN)):
                ended = False
                if chosen < 0:
                    chosen = k
        if ended:
            if not room(net, u, outs[0], now) or not room(net, u, outs[1], now):
                return False
            end = give_bare(net, u, outs[0], EMPTY | DONE, now, now)
            push(net, outs[1], EMPTY | DONE, 0, 0, 0, end + 1, end + 1)
            for k in range(n):
                pop(net, ins[k], end + 1)
            return True
        if chosen < 0:
            return False
        record_grant(net, u, chosen, now)
        serve(st, n, chosen)
        st[NAMED] = 0
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
    pass_beats(net, u, ins[k], outs[0], token, meets(net, u, ins[k], 0, starts(net, u, outs[0])))
    if ends:
        st[LOCKED] = 0
    return True
