"""Model of ``step_hw/units/accum.py``."""

from ..compiled import compiled
from ..network import BLOCKED, BUSY, DONE, EMPTY, STARVED, can_push, fail, is_bare, is_done, peek_value, push, stop_of
from ..values import NO_OPERATION, operate, operation_of, sign_of
from ._compute import (
    FRONT_MISALIGNED,
    FRONT_STARVED,
    LAST_STEP,
    MISALIGNED,
    STAGES,
    front,
    pack_front,
    take,
)
from ._fold import (
    HOLLOW,
    I0,
    I1,
    INDEX,
    INNER,
    OWN_FOLD,
    RANK,
    ROWS,
    ROWS_FULL,
    ROWS_INIT,
    SIZE,
    STARTED,
    advance,
    check,
    pack_fold,
    position_stop,
)

KIND = "accum"

# Own state, behind that of ``_fold``.
DRAINING, DRAIN_DONE, DRAIN_BARE, DRAIN_INIT, DRAIN_STOP, DRAIN_SIZE, D_INDEX, D_I1, D_I0, PIPE = range(
    OWN_FOLD, OWN_FOLD + 10)
# Control values (`sim.values`) of a fold of scalars: the operation, the form of operands and result, the initial state;
# the state, and what is in the pipeline.
OPERATION, FORM, INITIAL = range(HOLLOW + 1, HOLLOW + 4)
VALUES, FOLDED = PIPE + 20, PIPE + 40


def value_inputs(unit, graph, port):
    """Inputs from whose control values that of an output is computed; None where it is not."""
    params = unit.params
    known = operation_of(params["function"], params["in_types"], params["out_type"]) != NO_OPERATION
    return (0,) if known and unit.config["inner"] == 0 else None


def pack(unit, graph, build):
    """Join, pipeline, sizes of the state."""
    pack_front(unit, build)
    pack_fold(unit, build)
    par, params = build.par[unit.index], unit.params
    par[OPERATION] = NO_OPERATION
    if value_inputs(unit, graph, 0) is not None:
        par[OPERATION] = operation_of(params["function"], params["in_types"], params["out_type"])
        par[FORM], par[INITIAL] = sign_of(params["out_type"].dtype), params["init"]


@compiled
def step(u, par, st, ins, outs, net):
    """Contribution pipeline, read-modify-write, drain; see the RTL for the rules."""
    entry = front(par, st, ins, net)
    stages = par[STAGES]
    coming = peek_value(net, ins[0]) if entry >= 0 and par[OPERATION] != NO_OPERATION else 0
    value = st[VALUES + stages - 1] if stages > 0 else coming
    at_state = st[PIPE + stages - 1] if stages > 0 else (0 if entry < 0 else entry)
    ready = can_push(net, outs[0])

    # What the drain stands at before this cycle.
    draining = st[DRAINING] != 0
    drain_index = st[D_INDEX]
    drain_ends = position_stop(par, st, D_I1, D_I0, drain_index == st[DRAIN_SIZE])
    drain_last = st[DRAIN_DONE] != 0 or st[DRAIN_BARE] != 0 or drain_ends == 2
    free = not draining or (drain_last and ready)

    go = True
    code = 0
    tok = 0
    last_step = False
    if at_state != 0:
        tok = (at_state - 1) >> 1
        last_step = (at_state - 1) & LAST_STEP != 0
        code = check(par, st, net, tok)
        closing = stop_of(tok) >= par[RANK] + par[INNER]
        if is_done(tok):
            go = free
        elif is_bare(tok):
            go = free or not closing
        else:
            passed = not draining or drain_index > st[INDEX] or (drain_index == st[INDEX] and ready)
            go = passed and (free or not closing)
        go = go and code == 0
    if entry == FRONT_MISALIGNED:
        code = code if code != 0 else MISALIGNED
    if code != 0:
        fail(net, u, code)
        go = False
        entry = FRONT_STARVED

    busy = False
    # The drain emits.
    if draining and ready:
        busy = True
        if st[DRAIN_DONE] != 0:
            push(net, outs[0], EMPTY | DONE, 0)
        elif st[DRAIN_BARE] != 0:
            push(net, outs[0], EMPTY | st[DRAIN_STOP], 0)
        else:
            stop = st[DRAIN_STOP] if drain_ends == 2 else min(drain_ends, par[INNER])
            rows = par[ROWS_INIT] if st[DRAIN_INIT] != 0 else net.heap[par[ROWS] + drain_index]
            push(net, outs[0], stop | rows << 6, par[INITIAL] if st[DRAIN_INIT] != 0 else st[FOLDED])
            advance(st, D_INDEX, D_I1, D_I0, drain_ends)
        if drain_last:
            st[DRAINING] = 0

    # Read-modify-write.
    if at_state != 0 and go:
        busy = True
        element = not is_done(tok) and not is_bare(tok)
        ends = position_stop(par, st, I1, I0, stop_of(tok) >= par[INNER])
        complete_tensor = element and last_step and ends == 2
        if element and last_step and par[OPERATION] != NO_OPERATION:
            st[FOLDED] = operate(par[OPERATION], st[FOLDED] if st[STARTED] != 0 else par[INITIAL], value, par[FORM],
                                 par[FORM])
        if element:
            net.heap[par[ROWS] + st[INDEX]] = par[ROWS_FULL] if par[ROWS_FULL] == 1 else tok >> 6
        if last_step and (is_done(tok) or (closing and (complete_tensor or not element))):
            st[DRAINING] = 1
            st[DRAIN_DONE] = 1 if is_done(tok) else 0
            st[DRAIN_BARE] = 1 if is_bare(tok) and st[STARTED] == 0 and par[HOLLOW] != 0 else 0
            st[DRAIN_INIT] = 1 if not element and st[STARTED] == 0 else 0
            st[DRAIN_STOP] = stop_of(tok) - par[RANK]
            st[DRAIN_SIZE] = st[INDEX] if element else st[SIZE]
            st[STARTED] = 0
        elif complete_tensor:
            st[STARTED] = 1
            st[SIZE] = st[INDEX]
        if element and last_step:
            advance(st, INDEX, I1, I0, ends)

    # The pipeline advances unless the token at the state waits.
    if at_state != 0 and not go:
        return BUSY if busy else BLOCKED
    if stages > 0:
        for i in range(PIPE + stages - 1, PIPE, -1):
            st[i] = st[i - 1]
            st[i - PIPE + VALUES] = st[i - 1 - PIPE + VALUES]
            busy |= st[i] != 0
        st[PIPE] = 0 if entry == FRONT_STARVED else entry
        st[VALUES] = coming
    if entry != FRONT_STARVED:
        take(par, st, ins, net, entry)
        busy = True
    if busy:
        return BUSY
    return BLOCKED if draining else STARVED
