"""Model of ``step_hw/units/store.py``."""

from step_lang.errorcodes import ErrorCode

from ..compiled import compiled
from ..memory import (
    BASE,
    BURSTS,
    CALIBRATION,
    CHANNELS,
    COUNT0,
    DIMS,
    ELEMENTS_END,
    GROUPS,
    LIMIT,
    PER_BURST,
    POSITION_END,
    QUEUE_WORDS,
    QUEUES,
    SPAN,
    WAITING,
    affine_index,
    affine_last,
    affine_step,
    pack_affine,
    pack_elements,
    queue_level,
    queue_push,
    queue_room,
)
from ..network import BUSY, EMPTY, IDLE, MEMORY, STARVED, can_pop, fail, is_done, peek, pop

KIND = "store"

# State 0 is the engine's: finished. The position in the view follows it (numba: a slice of ``st``).
FINISHED, POSITION = 0, 1
FULL, ENDED, TAKEN, DRAINED = range(POSITION + POSITION_END, POSITION + POSITION_END + 4)
OVERHEAD = ELEMENTS_END

ADDRESS_RANGE, OVERFLOW = ErrorCode.ADDRESS_RANGE, ErrorCode.OVERFLOW


def pack(unit, graph, build):
    """``unit.params``: element_bytes, port."""
    par = build.par[unit.index]
    pack_affine(par, unit.config)
    pack_elements(unit, graph, build)
    par[OVERHEAD] = build.calibration.get("hbm.write_overhead", CALIBRATION["hbm.write_overhead"])


@compiled
def _empty_view(par):
    for k in range(par[DIMS]):
        if par[COUNT0 + k] == 0:
            return True
    return False


@compiled
def step(u, par, st, ins, outs, net):
    """One element a cycle into the channels' queues; finished when these are empty after done."""
    if st[ENDED] == 1 and st[FINISHED] == 0:
        for c in range(par[CHANNELS]):
            if queue_level(net, par[QUEUES] + c * QUEUE_WORDS) > 0:
                return MEMORY
        if st[DRAINED] < par[OVERHEAD]:
            st[DRAINED] += 1
            net.misc[2] += 1
            return MEMORY
        st[FINISHED] = 1
    if not can_pop(net, ins[0]):
        return IDLE if st[ENDED] == 1 else STARVED
    tok = peek(net, ins[0])
    if tok & EMPTY:
        if is_done(tok):
            st[ENDED] = 1
            st[FULL] = 0
        pop(net, ins[0])
        return BUSY
    position = st[POSITION:]
    index = affine_index(position)
    code = 0
    if st[FULL] == 1 or _empty_view(par):
        code = OVERFLOW
    elif index < 0 or index >= par[LIMIT]:
        code = ADDRESS_RANGE
    if code:
        fail(net, u, code)
        return IDLE
    place = index // par[PER_BURST]
    group = place % par[GROUPS]
    line = par[BASE] + place // par[GROUPS] * par[BURSTS]
    whole = True
    moved = False
    for c in range(group * par[SPAN], (group + 1) * par[SPAN]):
        if (st[TAKEN] >> c) & 1 == 0:
            queue = par[QUEUES] + c * QUEUE_WORDS
            if queue_room(net, queue):
                queue_push(net, queue, par[WAITING] + c, line, 0)
                st[TAKEN] |= 1 << c
                moved = True
            else:
                whole = False
    if whole:
        st[TAKEN] = 0
        if affine_last(par, position):
            st[FULL] = 1
        affine_step(par, position)
        pop(net, ins[0])
    return BUSY if moved or whole else MEMORY
