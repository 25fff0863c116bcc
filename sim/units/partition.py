"""Model of ``step_hw/units/partition.py``."""

from step_lang.errorcodes import ErrorCode

from ..compiled import compiled
from ..network import (
    BLOCKED,
    BUSY,
    EMPTY,
    STARVED,
    can_pop,
    can_push,
    is_done,
    peek,
    peek_value,
    pop,
    push,
    stop_of,
    with_stop,
)
from ..selectors import selected, selects_beyond

KIND = "partition"

RANK, N, WIDTH = 0, 1, 2
INSIDE, TAKEN = 0, 1  # TAKEN: a word for each 32 outputs
MISALIGNED, PROTOCOL, SELECTOR = ErrorCode.MISALIGNED, ErrorCode.PROTOCOL, ErrorCode.SELECTOR


def pack(unit, graph, build):
    """Parameter: rank."""
    par = build.par[unit.index]
    par[RANK] = unit.config["rank"]
    par[N] = len(unit.outputs)
    par[WIDTH] = graph.links[unit.inputs[1]].payload.data_bits


@compiled
def step(u, par, st, ins, outs, net):
    """A beat to every output that is selected, eagerly; the selector leaves with the chunk."""
    if not can_pop(net, ins[0]) or not can_pop(net, ins[1]):
        return STARVED
    data = peek(net, ins[0])
    selector = peek(net, ins[1])
    value = peek_value(net, ins[1])
    rank = par[RANK]
    done = is_done(data)
    stop = stop_of(data)
    ends = not done and stop >= rank
    bare = selector & EMPTY != 0
    empty = data & EMPTY != 0

    error = 0
    if done and st[INSIDE] == 1:
        error = PROTOCOL
    elif done != is_done(selector):
        error = MISALIGNED
    elif not done:
        if ends and stop != stop_of(selector) + rank:
            error = MISALIGNED
        elif bare and not (empty and ends):
            error = MISALIGNED
        elif not bare and empty and rank == 0:
            error = MISALIGNED
        elif not bare and selects_beyond(net, value, par[WIDTH], par[N]):
            error = SELECTOR
    if error != 0:
        net.misc[3] = u + 1
        net.misc[4] = error
        return BLOCKED

    moved = False
    waiting = False
    tok = with_stop(data, rank) if ends else data
    for k in range(par[N]):
        if not done and (bare or not selected(net, value, par[WIDTH], k)):
            continue
        word = TAKEN + k // 32
        if (st[word] >> (k % 32)) & 1 == 1:
            continue
        if can_push(net, outs[k]):
            push(net, outs[k], tok, peek_value(net, ins[0]))
            st[word] |= 1 << (k % 32)
            moved = True
        else:
            waiting = True
    if waiting:
        return BUSY if moved else BLOCKED
    for word in range(TAKEN, TAKEN + (par[N] + 31) // 32):
        st[word] = 0
    st[INSIDE] = 0 if ends or done else 1
    pop(net, ins[0])
    if ends or done:
        pop(net, ins[1])
    return BUSY
