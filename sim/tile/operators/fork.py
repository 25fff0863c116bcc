"""fork: a stream for each of its consumers. Of references it counts the copies."""

from ...compiled import compiled
from ..network import COLS, EMPTY, FIRST, LAST, ROWS, TOKEN, VALUE, available, change_uses, field, pop, push, room

KIND = "fork"
N, REFERENCES = 0, 1
COUNTED, TAKEN = 0, 1   # TAKEN: a word for each 32 outputs


def pack(op, unit, build):
    """Outputs; ``op`` is the stream."""
    build.par[unit, [N, REFERENCES]] = len(build.consumers(op)), build.is_reference(op.type)


@compiled
def step(u, par, st, ins, outs, net, now):
    """Give each output the token as soon as it has room; take it when all have it. It costs no time."""
    if not available(net, u, ins[0], now):
        return False
    n = par[N]
    token, value = field(net, ins[0], TOKEN), field(net, ins[0], VALUE)
    if par[REFERENCES] != 0 and st[COUNTED] == 0 and token & EMPTY == 0:
        change_uses(net, value, n - 1, now)
        st[COUNTED] = 1
    all_have = True
    moved = False
    for k in range(n):
        word, bit = TAKEN + k // 32, 1 << (k % 32)
        if st[word] & bit:
            continue
        if room(net, u, outs[k], now):
            push(net, outs[k], token, value, field(net, ins[0], ROWS), field(net, ins[0], COLS),
                 field(net, ins[0], FIRST), field(net, ins[0], LAST))
            st[word] |= bit
            moved = True
        else:
            all_have = False
    if all_have:
        for word in range(TAKEN, TAKEN + (n + 31) // 32):
            st[word] = 0
        st[COUNTED] = 0
        pop(net, ins[0], now)
        moved = True
    return moved
