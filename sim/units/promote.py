"""Model of ``step_hw/units/promote.py``."""

from step_lang.errorcodes import ErrorCode

from ..compiled import compiled
from ..network import (
    BLOCKED,
    BUSY,
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

KIND = "promote"
value_inputs = passes

RANK = 0
FULL, HELD, VALUE = 0, 1, 2
STOP_RANGE = ErrorCode.STOP_RANGE


def pack(unit, graph, build):
    """Parameter: rank."""
    build.par[unit.index, RANK] = unit.config["rank"]


@compiled
def step(u, par, st, ins, outs, net):
    """A register; a beat that may be the last waits in it until the beat behind it has been seen."""
    present = can_pop(net, ins[0])
    held = st[HELD]
    waits = not is_done(held) and stop_of(held) == par[RANK]
    tok = 0
    bad = False
    if present:
        tok = peek(net, ins[0])
        bad = stop_of(tok) > par[RANK]
    offers = st[FULL] == 1 and (not waits or (present and not bad))
    leaves = offers and can_push(net, outs[0])
    if leaves:
        push(net, outs[0], with_stop(held, par[RANK] + 1) if waits and is_done(tok) else held, st[VALUE])
    takes = present and not bad and (st[FULL] == 0 or leaves)
    if takes:
        st[FULL] = 1
        st[HELD] = tok
        st[VALUE] = peek_value(net, ins[0])
        pop(net, ins[0])
    elif leaves:
        st[FULL] = 0
    if bad:
        fail(net, u, STOP_RANGE)
    if takes or leaves:
        return BUSY
    return BLOCKED if offers or bad else STARVED
