"""flatten: dimensions lo..hi become one."""

from ...compiled import compiled
from ..cost import TILE, beats, finish, leaves, leaves_last, meets, starts, work_of
from ..network import (
    COLS,
    EMPTY,
    LAST,
    ROWS,
    TOKEN,
    VALUE,
    available,
    field,
    is_bare,
    is_done,
    pop,
    push,
    room,
    stop_of,
)

KIND = "flatten"
LO, HI, HOLDS = 0, 1, 2
HELD, HELD_TOKEN, HELD_VALUE, HELD_ROWS, HELD_COLS = range(5)


def pack(op, unit, build):
    """Dimensions. An element whose stop vanished is held where a stop behind it may close its vector."""
    build.par[unit, [LO, HI, HOLDS]] = op.lo, op.hi, op.lo == 0 < op.hi < op.inputs[0].rank


@compiled
def step(u, par, st, ins, outs, net, now):
    """Take one token; give it, or the one that was held."""
    if not available(net, u, ins[0], now):
        return False
    token = field(net, ins[0], TOKEN)
    stop = stop_of(token)
    lo, hi = par[LO], par[HI]
    after = stop if stop <= lo else (lo if stop <= hi else stop - (hi - lo))
    rows, cols, value = field(net, ins[0], ROWS), field(net, ins[0], COLS), field(net, ins[0], VALUE)
    last = field(net, ins[0], LAST)
    start = meets(net, u, ins[0], 0, starts(net, u, outs[0]))
    if is_bare(token):
        if after == 0:      # vanishes
            end = finish(net, u, start, last, 1)
            pop(net, ins[0], end + 1)
            return True
        if not room(net, u, outs[0], now):
            return False
        end = finish(net, u, start, last, 1)
        if st[HELD] != 0:   # it closes the vector of the one that is held
            push(net, outs[0], after, st[HELD_VALUE], st[HELD_ROWS], st[HELD_COLS], end + 1, end + 1)
            st[HELD] = 0
        else:
            push(net, outs[0], EMPTY | after, 0, 0, 0, end + 1, end + 1)
        pop(net, ins[0], end + 1)
        return True
    if not room(net, u, outs[0], now):
        return False
    if st[HELD] != 0:
        push(net, outs[0], 0, st[HELD_VALUE], st[HELD_ROWS], st[HELD_COLS], now + 1, now + 1)
        st[HELD] = 0
        return True
    if not is_done(token) and par[HOLDS] != 0 and stop > 0 and after == 0:
        end = finish(net, u, start, last, 1)
        st[HELD], st[HELD_VALUE], st[HELD_ROWS], st[HELD_COLS] = 1, value, rows, cols
        pop(net, ins[0], end + 1)
        return True
    count = beats(net, u, rows, cols) if net.cost[u, TILE] > 0 else 0
    end = finish(net, u, start, last, work_of(net, u, 0, 0, count))
    push(net, outs[0], token if is_done(token) else after, value, rows, cols, leaves(net, u, start, end),
         leaves_last(net, u, end))
    pop(net, ins[0], end + 1)
    return True
