"""reassemble: for each selector one chunk of every input that it names, in the order in which they arrive."""

from step_lang.errorcodes import ErrorCode

from ...compiled import compiled
from ...selectors import selects_beyond, selects_nothing
from ...turns import (
    CURRENT,
    FIRST_IN_TURN,
    LOCKED,
    SENT,
    clear_served,
    completes,
    in_turn,
    note_served,
    serve,
    served,
    wanted,
)
from ..cost import give_bare, meets, pass_beats, starts
from ..network import (
    EMPTY,
    FIRST,
    NO_VALUE,
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
MISALIGNED, SELECTOR, PROTOCOL, STOP_RANGE = (ErrorCode.MISALIGNED, ErrorCode.SELECTOR, ErrorCode.PROTOCOL,
                                              ErrorCode.STOP_RANGE)


def pack(op, unit, build):
    """Rank and inputs."""
    build.par[unit, [RANK, N, WIDTH, HOLLOW]] = op.rank, len(op.streams), op.selector.type.n, op.hollow


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
        if served(st, k):
            continue
        if not available(net, u, ins[k], now):
            over = False
        elif is_done(field(net, ins[k], TOKEN)):
            pop(net, ins[k], now + 1)
            note_served(st, k)
            moved = True
        else:
            return fail(net, u, MISALIGNED)
    if over:
        clear_served(st, n)
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
    if not bare and value == NO_VALUE:
        return fail(net, u, UNKNOWN)
    if not bare and selects_beyond(net, value, par[WIDTH], n):
        return fail(net, u, SELECTOR)
    if bare or selects_nothing(net, value, par[WIDTH], n):
        if not bare and par[HOLLOW] == 0:
            return fail(net, u, SELECTOR)
        if not room(net, u, outs[0], now):
            return False
        pop(net, ins[n], give_bare(net, u, outs[0], EMPTY | closing, now, now) + 1)
        return True
    if st[LOCKED] == 0:
        chosen = -1
        for distance in range(n):
            k = in_turn(st, n, distance)
            if not wanted(net, st, value, par[WIDTH], k):
                continue
            if available(net, u, ins[k], now):
                if is_done(field(net, ins[k], TOKEN)):
                    return fail(net, u, MISALIGNED)
                if chosen < 0:
                    chosen = k
        if chosen < 0:
            return False
        record_grant(net, u, chosen, now)
        serve(st, n, chosen)
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
    last = ends and completes(net, st, value, par[WIDTH], n, k)
    start = max(meets(net, u, ins[k], 0, starts(net, u, outs[0])), field(net, ins[n], FIRST))
    end = pass_beats(net, u, ins[k], outs[0], (token & ~15) | closing if last else token, start)
    if ends:
        st[LOCKED] = 0
        note_served(st, k)
    if last:
        clear_served(st, n)
        pop(net, ins[n], end + 1)
    return True
