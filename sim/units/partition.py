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
    fail,
    is_done,
    peek,
    peek_value,
    pop,
    push,
    stop_of,
    with_stop,
)
from ..selectors import selected, selects_beyond
from ..values import passes
from .scratchpad import is_live, pad_ports, port_of, request_change, settle

KIND = "partition"
STEERED_BY = (1,)
value_inputs = passes

RANK, N, WIDTH, PADS, PORTS, USES = 0, 1, 2, 3, 4, 5  # PADS: scratchpads, 0: no references; PORTS: their list
INSIDE, TAKEN, COUNTED = 0, 1, 5  # TAKEN: a word for each 32 outputs
FREED = ErrorCode.FREED
MISALIGNED, PROTOCOL, SELECTOR = ErrorCode.MISALIGNED, ErrorCode.PROTOCOL, ErrorCode.SELECTOR


def pack(unit, graph, build):
    """Register: rank. Where the data are references, ``unit.params``: ports, (scratchpad, port) of each whose
    references come; uses of each output."""
    par = build.par[unit.index]
    if "ports" in unit.params:
        par[PADS], par[PORTS] = len(unit.params["ports"]), pad_ports(unit, graph, build)
        par[USES] = build.reserve(len(unit.outputs), unit.params["uses"])
    par[RANK] = unit.config["rank"]
    par[N] = len(unit.outputs)
    par[WIDTH] = graph.links[unit.inputs[1]].payload.data_bits


@compiled
def step(u, par, st, ins, outs, net):
    """A beat to every output that is selected, eagerly; the selector leaves with the chunk."""
    for k in range(par[PADS]):
        settle(net, net.heap[par[PORTS] + 2 * k])
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
    held = peek_value(net, ins[0])
    b, router = -1, 0
    if par[PADS] > 0 and not empty:
        port = port_of(net.heap, par[PORTS], par[PADS], held)
        b, router = net.heap[port], net.heap[port + 1]
    if b >= 0 and error == 0 and st[COUNTED] == 0 and not is_live(net.heap, b, held):
        error = FREED
    if error != 0:
        return fail(net, u, error)

    if b >= 0 and st[COUNTED] == 0:
        uses = 0
        for k in range(par[N]):
            if not bare and selected(net, value, par[WIDTH], k):
                uses += net.heap[par[USES] + k]
        request_change(net.heap, b, router, held, uses)
        st[COUNTED] = 1

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
            push(net, outs[k], tok, held)
            st[word] |= 1 << (k % 32)
            moved = True
        else:
            waiting = True
    if waiting:
        return BUSY if moved else BLOCKED
    for word in range(TAKEN, TAKEN + (par[N] + 31) // 32):
        st[word] = 0
    st[COUNTED] = 0
    st[INSIDE] = 0 if ends or done else 1
    pop(net, ins[0])
    if ends or done:
        pop(net, ins[1])
    return BUSY
