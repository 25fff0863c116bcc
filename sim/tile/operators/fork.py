"""fork: a stream for each of its consumers."""

from ...compiled import compiled
from ..cost import LATENCY, TILE, beats
from ..network import (
    COLS,
    FIRST,
    LAST,
    ROWS,
    TOKEN,
    VALUE,
    available,
    field,
    place_time,
    pop,
    push,
    room,
)

KIND = "fork"
N = 0
UNTIL, TAKEN = 0, 1   # TAKEN: a word for each 32 outputs; UNTIL: when the slowest has taken the last beat


def pack(op, unit, build):
    """Outputs; ``op`` is the stream."""
    build.par[unit, N] = len(build.consumers(op))


@compiled
def step(u, par, st, ins, outs, net, now):
    """Give each output the token as soon as it has room; take it when all have it."""
    if not available(net, u, ins[0], now):
        return False
    n = par[N]
    token, value = field(net, ins[0], TOKEN), field(net, ins[0], VALUE)
    rows, cols, latency = field(net, ins[0], ROWS), field(net, ins[0], COLS), net.cost[u, LATENCY]
    more = beats(net, u, rows, cols) - 1 if net.cost[u, TILE] > 0 else 0
    all_have = True
    moved = False
    for k in range(n):
        word, bit = TAKEN + k // 32, 1 << (k % 32)
        if st[word] & bit:
            continue
        if room(net, u, outs[k], now):
            first = max(field(net, ins[0], FIRST), net.free[u], place_time(net, outs[k]))
            last = max(field(net, ins[0], LAST), first + more)
            push(net, outs[k], token, value, rows, cols, first + latency, last + latency)
            st[UNTIL] = max(st[UNTIL], last)
            st[word] |= bit
            moved = True
        else:
            all_have = False
    if all_have:
        for word in range(TAKEN, TAKEN + (n + 31) // 32):
            st[word] = 0
        net.free[u] = st[UNTIL] + (1 if net.cost[u, TILE] > 0 else 0)
        pop(net, ins[0], max(now, net.free[u]))
        st[UNTIL] = 0
        moved = True
    return moved
