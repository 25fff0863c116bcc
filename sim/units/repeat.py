"""Model of ``step_hw/units/repeat.py``."""

from step_lang.errorcodes import ErrorCode

from ..compiled import compiled
from ..network import (
    BLOCKED,
    BUSY,
    EMPTY,
    STARVED,
    can_pop,
    can_push,
    fail,
    is_done,
    peek,
    peek_value,
    pop,
    push,
    stop_of,
    with_stop,
)
from ..values import passes

KIND = "repeat"
value_inputs = passes

N = 0
MADE = 0
STOP_RANGE = ErrorCode.STOP_RANGE


def pack(unit, graph, build):
    """Parameter: n."""
    build.par[unit.index, N] = unit.config["n"]


@compiled
def step(u, par, st, ins, outs, net):
    """n output beats an element, one otherwise."""
    if not can_pop(net, ins[0]):
        return STARVED
    tok = peek(net, ins[0])
    if stop_of(tok) == 15:
        return fail(net, u, STOP_RANGE)
    if not can_push(net, outs[0]):
        return BLOCKED
    last = tok & EMPTY != 0 or st[MADE] + 1 == par[N]
    stop = 0
    if last and not is_done(tok):
        stop = stop_of(tok) + 1
    push(net, outs[0], with_stop(tok, stop), peek_value(net, ins[0]))
    if last:
        st[MADE] = 0
        pop(net, ins[0])
    else:
        st[MADE] += 1
    return BUSY
