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
    fail,
    is_done,
    peek,
    peek_value,
    pop,
    push,
    stop_of,
)
from ..values import passes
from .scratchpad import is_live, pad_ports, port_of, request_change, settle

KIND = "expand"
value_inputs = passes

B, PADS, PORTS, USES = 0, 1, 2, 3   # PADS: scratchpads, 0: no references; PORTS: their list
MISALIGNED, FREED = ErrorCode.MISALIGNED, ErrorCode.FREED


def pack(unit, graph, build):
    """Register: b. Where the values are references, ``unit.params``: ports, (scratchpad, port) of each whose references
    come; uses of one at the output."""
    par = build.par[unit.index]
    par[B] = unit.config["b"]
    if "ports" in unit.params:
        par[PADS], par[PORTS] = len(unit.params["ports"]), pad_ports(unit, graph, build)
        par[USES] = unit.params["uses"][0]


@compiled
def step(u, par, st, ins, outs, net):
    """One output beat a reference beat; the value leaves with one of stop >= b, or with done."""
    for k in range(par[PADS]):
        settle(net, net.heap[par[PORTS] + 2 * k])
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
        return fail(net, u, MISALIGNED)
    held = peek_value(net, ins[0])
    b, router = -1, 0
    if par[PADS] > 0 and value & EMPTY == 0:
        port = port_of(net.heap, par[PORTS], par[PADS], held)
        b, router = net.heap[port], net.heap[port + 1]
        if not is_live(net.heap, b, held):
            return fail(net, u, FREED)
    if not can_push(net, outs[0]):
        return BLOCKED
    if b >= 0 and (pops or not bare):
        request_change(net.heap, b, router, held, (0 if bare else par[USES]) + (0 if pops else 1))
    control = (1 << ROWS_SHIFT) - 1
    if bare:
        push(net, outs[0], ref & control, 0)
    else:
        push(net, outs[0], (ref & control) | (value & ~control), held)
    pop(net, ins[1])
    if pops:
        pop(net, ins[0])
    return BUSY
