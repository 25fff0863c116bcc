"""repeat: each element n times, as a new innermost dimension."""

from ...compiled import compiled
from ..cost import TILE, beats, comes, finish, leaves, leaves_last, meets, starts, whole, work_of
from ..functions import element_bytes
from ..network import (
    COLS,
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

KIND = "repeat"
N, BYTES, ROUND = 0, 1, 0


def pack(op, unit, build):
    """How often."""
    build.par[unit, [N, BYTES]] = op.n, element_bytes(op.output.type)


@compiled
def step(u, par, st, ins, outs, net, now):
    """Give one; take the element with the last."""
    if not available(net, u, ins[0], now) or not whole(net, u, ins[0], 0, now) or not room(net, u, outs[0], now):
        return False
    token = field(net, ins[0], TOKEN)
    rows, cols = field(net, ins[0], ROWS), field(net, ins[0], COLS)
    start, arrived = meets(net, u, ins[0], 0, starts(net, u, outs[0])), comes(net, u, ins[0], 0)
    if is_done(token) or is_bare(token):
        end = finish(net, u, start, arrived, 1)
        push(net, outs[0], token if is_done(token) else token + 1, 0, 0, 0, end + 1, end + 1)
        pop(net, ins[0], end + 1)
        return True
    count = beats(net, u, rows, cols) if net.cost[u, TILE] > 0 else 0
    end = finish(net, u, start, arrived, work_of(net, u, 0, 0, count))
    st[ROUND] += 1
    last = st[ROUND] == par[N]
    push(net, outs[0], stop_of(token) + 1 if last else 0, field(net, ins[0], VALUE), rows, cols,
         leaves(net, u, start, end), leaves_last(net, u, end))
    if last:
        st[ROUND] = 0
        pop(net, ins[0], end + 1)
    return True
