"""Model of ``step_hw/units/zip.py``."""

from step_lang.errorcodes import ErrorCode

from ..compiled import compiled
from ..network import (
    BLOCKED,
    BUSY,
    ROWS_SHIFT,
    STARVED,
    can_pop,
    can_push,
    peek,
    peek_value,
    pop,
    push,
)

KIND = "zip"

N, TALLEST, FIRST = 0, 1, 2
MISALIGNED, SHAPE = ErrorCode.MISALIGNED, ErrorCode.SHAPE


def pack(unit, graph, build):
    """Parameters: number of inputs, which of them are the tallest (a bit each) and the first of those."""
    heights = [graph.links[link].payload.max_rows for link in unit.inputs]
    build.par[unit.index, N] = len(unit.inputs)
    build.par[unit.index, TALLEST] = sum(1 << k for k, height in enumerate(heights) if height == max(heights))
    build.par[unit.index, FIRST] = heights.index(max(heights))


@compiled
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
    rows = peek(net, ins[par[FIRST]]) & ~control
    for k in range(par[N]):
        if (par[TALLEST] >> k) & 1 == 1 and peek(net, ins[k]) & ~control != rows:
            net.misc[3] = u + 1
            net.misc[4] = SHAPE
            return BLOCKED
    if not can_push(net, outs[0]):
        return BLOCKED
    push(net, outs[0], first | rows, peek_value(net, ins[0]))
    for k in range(par[N]):
        pop(net, ins[k])
    return BUSY
