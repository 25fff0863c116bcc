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
    fail,
    peek,
    peek_value,
    pop,
    push,
)
from ..selectors import BITS

KIND = "zip"

# JOINS: whether the control value is those of all inputs, each at its ``OFFSETS``.
N, TALLEST, FIRST, JOINS, OFFSETS = 0, 1, 2, 3, 4
MISALIGNED, SHAPE = ErrorCode.MISALIGNED, ErrorCode.SHAPE


def pack(unit, graph, build):
    """Parameters: number of inputs, which of them are the tallest (a bit each) and the first of those."""
    heights = [graph.links[link].payload.max_rows for link in unit.inputs]
    build.par[unit.index, N] = len(unit.inputs)
    build.par[unit.index, TALLEST] = sum(1 << k for k, height in enumerate(heights) if height == max(heights))
    build.par[unit.index, FIRST] = heights.index(max(heights))
    build.par[unit.index, JOINS] = graph.links[unit.outputs[0]].payload.data_bits <= BITS
    if build.par[unit.index, JOINS]:
        widths = [graph.links[link].payload.data_bits for link in unit.inputs]
        build.par[unit.index, OFFSETS:OFFSETS + len(widths)] = [sum(widths[:k]) for k in range(len(widths))]


def value_inputs(unit, graph, port):
    """Those of all inputs, as far as they fit."""
    return range(len(unit.inputs)) if graph.links[unit.outputs[0]].payload.data_bits <= BITS else None


@compiled
def step(u, par, st, ins, outs, net):
    """A join: all inputs or none."""
    for k in range(par[N]):
        if not can_pop(net, ins[k]):
            return STARVED
    control = (1 << ROWS_SHIFT) - 1
    first = peek(net, ins[0]) & control
    for k in range(1, par[N]):
        if peek(net, ins[k]) & control != first:
            return fail(net, u, MISALIGNED)
    rows = peek(net, ins[par[FIRST]]) & ~control
    for k in range(par[N]):
        if (par[TALLEST] >> k) & 1 == 1 and peek(net, ins[k]) & ~control != rows:
            return fail(net, u, SHAPE)
    if not can_push(net, outs[0]):
        return BLOCKED
    value = 0
    if par[JOINS] == 1:
        for k in range(par[N]):
            value |= peek_value(net, ins[k]) << par[OFFSETS + k]
    push(net, outs[0], first | rows, value)
    for k in range(par[N]):
        pop(net, ins[k])
    return BUSY
