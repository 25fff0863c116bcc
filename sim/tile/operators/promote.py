"""promote: a new outermost dimension. The last element before done is held until done is seen."""

from ...compiled import compiled
from ..cost import finish, leaves_last, meets, starts
from ..network import COLS, EMPTY, LAST, ROWS, TOKEN, VALUE, available, field, is_done, pop, push, room, stop_of

KIND = "promote"
RANK = 0
HELD, HELD_TOKEN, HELD_VALUE, HELD_ROWS, HELD_COLS = range(5)


def pack(op, unit, build):
    """The stream's rank."""
    build.par[unit, RANK] = op.inputs[0].rank


@compiled
def step(u, par, st, ins, outs, net, now):
    """Take one token; give it, or the one that was held."""
    if not available(net, u, ins[0], now):
        return False
    token = field(net, ins[0], TOKEN)
    if st[HELD] != 0:
        if not room(net, u, outs[0], now):
            return False
        held = st[HELD_TOKEN]
        if is_done(token):
            held = (held & EMPTY) | (par[RANK] + 1)
        push(net, outs[0], held, st[HELD_VALUE], st[HELD_ROWS], st[HELD_COLS], now + 1, now + 1)
        st[HELD] = 0
        return True
    last = field(net, ins[0], LAST)
    start = meets(net, u, ins[0], 0, starts(net, u, outs[0]))
    if not is_done(token) and stop_of(token) == par[RANK]:
        end = finish(net, u, start, last, 1)
        st[HELD], st[HELD_TOKEN], st[HELD_VALUE] = 1, token, field(net, ins[0], VALUE)
        st[HELD_ROWS], st[HELD_COLS] = field(net, ins[0], ROWS), field(net, ins[0], COLS)
        pop(net, ins[0], end + 1)
        return True
    if not room(net, u, outs[0], now):
        return False
    end = finish(net, u, start, last, 1)
    time = leaves_last(net, u, end)
    push(net, outs[0], token, field(net, ins[0], VALUE), field(net, ins[0], ROWS), field(net, ins[0], COLS), time, time)
    pop(net, ins[0], end + 1)
    return True
