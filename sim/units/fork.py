"""Model of ``step_hw/units/fork.py``."""

from ..compiled import compiled
from ..network import BLOCKED, BUSY, STARVED, can_pop, can_push, peek, peek_value, pop, push
from ..values import passes

KIND = "fork"
value_inputs = passes

N = 0
TAKEN = 0


def pack(unit, graph, build):
    """Parameter: number of outputs."""
    build.par[unit.index, N] = len(unit.outputs)


@compiled
def step(u, par, st, ins, outs, net):
    """Eager copy: an output takes the beat when it can; the input leaves when all have."""
    if not can_pop(net, ins[0]):
        return STARVED
    tok = peek(net, ins[0])
    value = peek_value(net, ins[0])
    n = par[N]
    moved = False
    for k in range(n):
        if (st[TAKEN] >> k) & 1 == 0 and can_push(net, outs[k]):
            push(net, outs[k], tok, value)
            st[TAKEN] |= 1 << k
            moved = True
    if st[TAKEN] == (1 << n) - 1:
        st[TAKEN] = 0
        pop(net, ins[0])
    return BUSY if moved else BLOCKED
