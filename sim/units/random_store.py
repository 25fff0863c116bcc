"""Model of ``step_hw/units/random_store.py``."""

from step_lang.errorcodes import ErrorCode
from step_lang.timing import store_pending

from ..compiled import compiled
from ..memory import (
    BASE,
    BURSTS,
    CALIBRATION,
    CHANNELS,
    ELEMENTS_END,
    GROUPS,
    LIMIT,
    PER_BURST,
    POP_STAMP,
    POPPED,
    QUEUE_WORDS,
    QUEUES,
    SPAN,
    WAITING,
    pack_elements,
    queue_level,
    queue_push,
    queue_room,
)
from ..network import (
    BLOCKED,
    BUSY,
    EMPTY,
    IDLE,
    MEMORY,
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
    with_stop,
)

KIND = "random_store"
STEERED_BY = (0,)

# Parameters beyond the elements: dimensions of a chunk, whether there are acknowledgements, how many may be pending,
# heap offsets of the list (token, group) and of the count of elements that each channel served and that have left it.
OVERHEAD, INNER, TELLS, PENDING, LIST, COUNTS = range(ELEMENTS_END, ELEMENTS_END + 6)
# State 0 is the engine's: finished.
FINISHED, ENDED, TAKEN, DRAINED, BEGIN, LEVEL = range(6)
MISALIGNED, ADDRESS_RANGE = ErrorCode.MISALIGNED, ErrorCode.ADDRESS_RANGE


def pack(unit, graph, build):
    """``unit.params``: element_bytes, port; registers base, limit, inner."""
    par = build.par[unit.index]
    shared = pack_elements(unit, graph, build)
    par[OVERHEAD] = build.calibration.get("hbm.write_overhead", CALIBRATION["hbm.write_overhead"])
    par[INNER] = unit.config.get("inner", 0)
    par[TELLS] = len(unit.outputs)
    par[PENDING] = store_pending(shared.memory, unit.params["element_bytes"])
    par[LIST] = build.reserve(2 * int(par[PENDING]))
    par[COUNTS] = build.reserve(shared.memory.channels)


def value_inputs(unit, graph, port):
    """An acknowledgement is always true."""
    return ()


@compiled
def _whole(par, st, net):
    """Have its channels accepted the oldest element that is pending?"""
    entry = par[LIST] + 2 * st[BEGIN]
    if net.heap[entry] & EMPTY:
        return True
    group = net.heap[entry + 1]
    for c in range(group * par[SPAN], (group + 1) * par[SPAN]):
        queue = par[QUEUES] + c * QUEUE_WORDS
        served = net.heap[queue + POPPED]
        if net.heap[queue + POP_STAMP] == net.misc[0] + 1:
            served -= 1     # it shows in the next cycle
        if served <= net.heap[par[COUNTS] + c]:
            return False
    return True


@compiled
def _acknowledge(par, st, outs, net):
    """The oldest leaves when it is whole: 1 if it does, -1 if the output does not take it, 0 if it waits for memory or
    is none."""
    if st[LEVEL] == 0 or not _whole(par, st, net):
        return 0
    entry = par[LIST] + 2 * st[BEGIN]
    tok, group = net.heap[entry], net.heap[entry + 1]
    if tok & EMPTY or stop_of(tok) >= par[INNER]:
        if not can_push(net, outs[0]):
            return -1
        if is_done(tok):
            push(net, outs[0], tok, 0)
        elif tok & EMPTY:
            push(net, outs[0], with_stop(tok, stop_of(tok) - par[INNER]), 0)
        else:
            push(net, outs[0], token(stop_of(tok) - par[INNER], 1), 1)
    if tok & EMPTY == 0:
        for c in range(group * par[SPAN], (group + 1) * par[SPAN]):
            net.heap[par[COUNTS] + c] += 1
    st[BEGIN] = (st[BEGIN] + 1) % par[PENDING]
    st[LEVEL] -= 1
    net.misc[2] += 1
    return 1


@compiled
def step(u, par, st, ins, outs, net):
    """One element a cycle into the channels' queues, one acknowledgement a cycle; finished as a store is."""
    if st[ENDED] == 1 and st[FINISHED] == 0:
        drained = True
        for c in range(par[CHANNELS]):
            if queue_level(net, par[QUEUES] + c * QUEUE_WORDS) > 0:
                drained = False
        if drained:
            if st[DRAINED] < par[OVERHEAD]:
                st[DRAINED] += 1
                net.misc[2] += 1
            else:
                st[FINISHED] = 1
    level = st[LEVEL]
    end = (st[BEGIN] + level) % par[PENDING]
    told = _acknowledge(par, st, outs, net) if par[TELLS] == 1 else 0
    waits = BLOCKED if told < 0 else MEMORY if level > 0 else STARVED
    if not can_pop(net, ins[0]) or not can_pop(net, ins[1]):
        if told == 1:
            return BUSY
        return IDLE if st[ENDED] == 1 and level == 0 else waits
    tok = peek(net, ins[0])
    if (tok ^ peek(net, ins[1])) & 63 != 0:
        fail(net, u, MISALIGNED)
        return IDLE
    group = 0
    index = peek_value(net, ins[0])
    if tok & EMPTY == 0 and index >= par[LIMIT]:
        fail(net, u, ADDRESS_RANGE)
        return IDLE
    if par[TELLS] == 1 and level == par[PENDING]:
        return BUSY if told == 1 else waits
    if tok & EMPTY == 0:
        place = index // par[PER_BURST]
        group = place % par[GROUPS]
        line = par[BASE] + place // par[GROUPS] * par[BURSTS]
        before = st[TAKEN]
        for c in range(group * par[SPAN], (group + 1) * par[SPAN]):
            if (st[TAKEN] >> c) & 1 == 0:
                queue = par[QUEUES] + c * QUEUE_WORDS
                if queue_room(net, queue):
                    queue_push(net, queue, par[WAITING] + c, line, 0)
                    st[TAKEN] |= 1 << c
        if st[TAKEN] != ((1 << par[SPAN]) - 1) << (group * par[SPAN]):
            return BUSY if told == 1 or st[TAKEN] != before else MEMORY
        st[TAKEN] = 0
    if par[TELLS] == 1 and (tok & EMPTY == 0 or is_done(tok) or stop_of(tok) >= par[INNER]):
        entry = par[LIST] + 2 * end
        net.heap[entry] = tok & 63
        net.heap[entry + 1] = group
        st[LEVEL] += 1
    if is_done(tok):
        st[ENDED] = 1
    pop(net, ins[0])
    pop(net, ins[1])
    return BUSY
