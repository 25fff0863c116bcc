"""promote: a new outermost dimension. The last element before done is held until done is seen."""

from ...compiled import compiled
from ..cost import beats_of, comes, finish, leaves, leaves_last, meets, starts, work_of
from ..held import HELD, HELD_TOKEN, hold, release
from ..network import COLS, EMPTY, ROWS, TOKEN, VALUE, available, field, is_done, pop, push, room, stop_of

KIND = "promote"
RANK = 0


def pack(op, unit, build):
    """The stream's rank."""
    build.par[unit, RANK] = op.inputs[0].rank


@compiled
def step(u, par, st, ins, outs, net, now):
    """Take one token; give it, or the one that was held."""
    if not available(net, u, ins[0], now):
        return False
    token = field(net, ins[0], TOKEN)
    start = meets(net, u, ins[0], 0, starts(net, u, outs[0]))
    if st[HELD] != 0:
        if not room(net, u, outs[0], now):
            return False
        held = st[HELD_TOKEN]
        if is_done(token):
            held = (held & EMPTY) | (par[RANK] + 1)
        release(net, st, outs[0], held, start)
        return True
    rows, cols, value = field(net, ins[0], ROWS), field(net, ins[0], COLS), field(net, ins[0], VALUE)
    count = beats_of(net, u, token, rows, cols)
    last = comes(net, u, ins[0], 0)
    if not is_done(token) and stop_of(token) == par[RANK]:
        end = finish(net, u, start, last, work_of(net, u, 0, 0, count))
        hold(net, u, st, token, value, rows, cols, start, end)
        pop(net, ins[0], end + 1)
        return True
    if not room(net, u, outs[0], now):
        return False
    end = finish(net, u, start, last, work_of(net, u, 0, 0, count))
    push(net, outs[0], token, value, rows, cols, leaves(net, u, start, end), leaves_last(net, u, end))
    pop(net, ins[0], end + 1)
    return True
