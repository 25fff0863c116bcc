"""flatten: dimensions lo..hi become one."""

from ...compiled import compiled
from ..cost import TILE, beats, finish, leaves, leaves_last, meets, starts, work_of
from ..held import HELD, hold, release
from ..lowered import is_tiled
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
LO, HI, HOLDS, TILED = range(4)


def pack(op, unit, build):
    """Dimensions. An element whose stop vanished is held where a stop behind it may close its vector; in hardware those
    are dimensions of physical tiles where there are such, and these do not vanish."""
    par = build.par[unit]
    par[[LO, HI, HOLDS]] = op.lo, op.hi, op.lo == 0 < op.hi < op.inputs[0].rank
    par[TILED] = build.machine.has_elements and is_tiled(op.output.type)


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
            release(net, st, outs[0], after, 0 if par[TILED] != 0 else end)
        else:
            push(net, outs[0], EMPTY | after, 0, 0, 0, end + 1, end + 1)
        pop(net, ins[0], end + 1)
        return True
    if not room(net, u, outs[0], now):
        return False
    if st[HELD] != 0:
        release(net, st, outs[0], 0, 0 if par[TILED] != 0 else start)
        return True
    count = beats(net, u, rows, cols) if net.cost[u, TILE] > 0 else 0
    if not is_done(token) and par[HOLDS] != 0 and stop > 0 and after == 0:
        end = finish(net, u, start, last, work_of(net, u, 0, 0, count))
        hold(net, u, st, token, value, rows, cols, start, end)
        pop(net, ins[0], end + 1)
        return True
    end = finish(net, u, start, last, work_of(net, u, 0, 0, count))
    push(net, outs[0], token if is_done(token) else after, value, rows, cols, leaves(net, u, start, end),
         leaves_last(net, u, end))
    pop(net, ins[0], end + 1)
    return True
