"""Model of ``step_hw/units/zip.py``."""

from numba import njit

from ..network import BLOCKED, BUSY, ROWS_SHIFT, STARVED, can_pop, can_push, peek, peek_value, pop, push

KIND = "zip"

N, ROWS_FROM = 0, 1
MISALIGNED = 1


def pack(unit, graph, build):
    """Parameters: number of inputs, and which of them counts the rows (the first of the tallest)."""
    tallest = [graph.links[link].payload.max_rows for link in unit.inputs]
    build.par[unit.index, N] = len(unit.inputs)
    build.par[unit.index, ROWS_FROM] = tallest.index(max(tallest))


@njit(inline="never")
def step(u, par, st, ins, outs, net):
    """A join: all inputs or none. The control value is the first input's."""
    for k in range(par[N]):
        if not can_pop(net, ins[k]):
            return STARVED
    control = (1 << ROWS_SHIFT) - 1
    first = peek(net, ins[0]) & control
    for k in range(1, par[N]):
        if peek(net, ins[k]) & control != first:
            net.misc[3] = u + 1
            net.misc[4] = MISALIGNED
            return BLOCKED
    if not can_push(net, outs[0]):
        return BLOCKED
    push(net, outs[0], first | (peek(net, ins[par[ROWS_FROM]]) & ~control), peek_value(net, ins[0]))
    for k in range(par[N]):
        pop(net, ins[k])
    return BUSY
