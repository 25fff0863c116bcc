"""Model of ``step_hw/units/map.py``."""

from step_lang.errorcodes import ErrorCode

from ..compiled import compiled
from ..network import BLOCKED, BUSY, STARVED, can_push, fail, is_bare, is_done, peek, peek_value, push
from ..values import INDEX, NO_OPERATION, operate, operation_of, selector_index, sign_of
from ._compute import (
    FRONT_MISALIGNED,
    FRONT_STARVED,
    INPUTS,
    LAST_STEP,
    MISALIGNED,
    OWN,
    STAGES,
    front,
    pack_front,
    take,
)

KIND = "map"

# What is done to control values (`sim.values`): the operation, forms of operands and result, width of a selector, and
# the constant of a scale.
OPERATION, FORM, OUT_FORM, WIDTH, CONSTANT = range(OWN, OWN + 5)
# Tokens and control values in the pipeline.
PIPE, VALUES = OWN, OWN + 24
SELECTOR = ErrorCode.SELECTOR


def pack(unit, graph, build):
    """Join and pipeline as ``unit.params`` says."""
    pack_front(unit, build)
    par, params = build.par[unit.index], unit.params
    types, out = params["in_types"], params["out_type"]
    par[OPERATION] = operation_of(params["function"], types, out)
    if par[OPERATION] == INDEX:
        par[WIDTH] = types[0].n
    elif par[OPERATION] != NO_OPERATION:
        par[FORM], par[OUT_FORM] = sign_of(types[0].dtype), sign_of(out.dtype)
        par[CONSTANT] = unit.config.get("constant", 0)


def value_inputs(unit, graph, port):
    """Inputs from whose control values that of an output is computed; None where it is not."""
    params = unit.params
    known = operation_of(params["function"], params["in_types"], params["out_type"]) != NO_OPERATION
    return range(len(unit.inputs)) if known else None


@compiled
def _value(par, ins, net):
    """Control value of the element at the inputs; -1 for a selector that has no index."""
    if par[OPERATION] == NO_OPERATION:
        return 0
    first = peek_value(net, ins[0])
    if par[OPERATION] == INDEX:
        return selector_index(net, first, par[WIDTH])
    second = peek_value(net, ins[1]) if par[INPUTS] > 1 else par[CONSTANT]
    return operate(par[OPERATION], first, second, par[FORM], par[OUT_FORM])


@compiled
def step(u, par, st, ins, outs, net):
    """A pipeline that advances as a whole; it stalls when its last stage holds a beat that the output does not take."""
    entry = front(par, st, ins, net)
    if entry == FRONT_MISALIGNED:
        fail(net, u, MISALIGNED)
        entry = FRONT_STARVED
    value = 0
    if entry != FRONT_STARVED:
        head = peek(net, ins[0])
        if not is_bare(head) and not is_done(head):
            value = _value(par, ins, net)
            if value < 0:
                fail(net, u, SELECTOR)
                entry = FRONT_STARVED
    last = PIPE + par[STAGES] - 1
    if st[last] != 0 and not can_push(net, outs[0]):
        return BLOCKED
    busy = False
    if st[last] != 0:
        push(net, outs[0], (st[last] - 1) >> 1, st[last - PIPE + VALUES])
        busy = True
    for i in range(last, PIPE, -1):
        st[i] = st[i - 1]
        st[i - PIPE + VALUES] = st[i - 1 - PIPE + VALUES]
        busy |= st[i] != 0
    st[PIPE] = 0
    if entry != FRONT_STARVED:
        take(par, st, ins, net, entry)
        if (entry - 1) & LAST_STEP:
            st[PIPE] = entry
            st[VALUES] = value
        busy = True
    return BUSY if busy else STARVED
