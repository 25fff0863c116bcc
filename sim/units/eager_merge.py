"""Model of ``step_hw/units/eager_merge.py``."""

from step_lang.errorcodes import ErrorCode

from ..compiled import compiled
from ..network import (
    BLOCKED,
    BUSY,
    DONE,
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
    token,
)
from ..selectors import pack_selectors
from ..turns import CURRENT, FIRST_IN_TURN, LOCKED, OWN, in_turn
from ._arbiter import grant, waits

KIND = "eager_merge"
ARBITRATES = True

RANK, N, NAMES, TABLE = 0, 1, 2, 3
TAKEN, NAMED = OWN, OWN + 1
STOP_RANGE, PROTOCOL = ErrorCode.STOP_RANGE, ErrorCode.PROTOCOL


def pack(unit, graph, build):
    """Parameter: rank. ``TABLE`` is where the control value of each input's one-hot selector lies."""
    par = build.par[unit.index]
    n = len(unit.inputs)
    par[RANK] = unit.config["rank"]
    par[N] = n
    par[NAMES] = len(unit.outputs) > 1
    values = pack_selectors(build, [1 << k for k in range(n)], n)
    par[TABLE] = build.reserve(n, values)


def value_inputs(unit, graph, port):
    """Elements of every input pass; selectors are made here."""
    return range(len(unit.inputs)) if port == 0 else ()


@compiled
def step(u, par, st, ins, outs, net):
    """A beat of the input that is served; its name beside it, eagerly."""
    n = par[N]
    ended = False
    if st[LOCKED] == 0:
        ended = True
        for k in range(n):
            if not can_pop(net, ins[k]) or not is_done(peek(net, ins[k])):
                ended = False
                break
    if st[LOCKED] == 0 and not ended:
        for distance in range(n):
            k = in_turn(st, n, distance)
            if waits(net, ins[k]):
                grant(u, st, net, n, k)
                break
        if st[LOCKED] == 0:
            return STARVED

    k = st[CURRENT]
    moved = False
    blocked = False
    if par[NAMES] == 1 and st[NAMED] == 0:
        if can_push(net, outs[1]):
            push(net, outs[1], EMPTY | DONE if ended else token(0, 1), 0 if ended else net.heap[par[TABLE] + k])
            st[NAMED] = 1
            moved = True
        else:
            blocked = True
    if ended:
        if st[TAKEN] == 0:
            if can_push(net, outs[0]):
                push(net, outs[0], EMPTY | DONE, 0)
                st[TAKEN] = 1
                moved = True
            else:
                blocked = True
        if blocked:
            return BUSY if moved else BLOCKED
        for j in range(n):
            pop(net, ins[j])
        st[TAKEN], st[NAMED], st[FIRST_IN_TURN] = 0, 0, 0
        return BUSY

    if not can_pop(net, ins[k]):
        return BUSY if moved else STARVED
    head = peek(net, ins[k])
    if is_done(head):
        return fail(net, u, PROTOCOL)
    if stop_of(head) > par[RANK]:
        return fail(net, u, STOP_RANGE)
    ends = stop_of(head) == par[RANK]
    if st[TAKEN] == 0:
        if not can_push(net, outs[0]):
            return BUSY if moved else BLOCKED
        push(net, outs[0], head, peek_value(net, ins[k]))
        st[TAKEN] = 1
        moved = True
    if ends and blocked:
        return BUSY if moved else BLOCKED
    st[TAKEN] = 0
    pop(net, ins[k])
    if ends:
        st[LOCKED] = 0
        st[NAMED] = 0
    return BUSY
