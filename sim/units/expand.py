"""Model of ``step_hw/units/expand.py``."""

from step_lang.errorcodes import ErrorCode

from ..compiled import compiled
from ..network import (
    BLOCKED,
    BUSY,
    EMPTY,
    ROWS_SHIFT,
    STARVED,
    can_pop,
    can_push,
    is_done,
    peek,
    peek_value,
    pop,
    push,
    stop_of,
)
from ..values import passes

KIND = "expand"
value_inputs = passes

B = 0
MISALIGNED = ErrorCode.MISALIGNED


def pack(unit, graph, build):
    """Parameter: b."""
    build.par[unit.index, B] = unit.config["b"]


@compiled
def step(u, par, st, ins, outs, net):
    """One output beat a reference beat; the value leaves with one of stop >= b, or with done."""
    if not can_pop(net, ins[0]) or not can_pop(net, ins[1]):
        return STARVED
    value = peek(net, ins[0])
    ref = peek(net, ins[1])
    done = is_done(ref)
    pops = done or stop_of(ref) >= par[B]
    bare = ref & EMPTY != 0
    differ = is_done(value) != done or (value & EMPTY != 0 and not bare)
    differ = differ or (par[B] == 0 and bare and value & EMPTY == 0)
    if differ or (pops and stop_of(value) != stop_of(ref)):
        net.misc[3] = u + 1
        net.misc[4] = MISALIGNED
        return BLOCKED
    if not can_push(net, outs[0]):
        return BLOCKED
    control = (1 << ROWS_SHIFT) - 1
    if bare:
        push(net, outs[0], ref & control, 0)
    else:
        push(net, outs[0], (ref & control) | (value & ~control), peek_value(net, ins[0]))
    pop(net, ins[1])
    if pops:
        pop(net, ins[0])
    return BUSY
