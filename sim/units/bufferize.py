"""Model of ``step_hw/units/bufferize.py``."""

from step_lang.errorcodes import ErrorCode
from step_lang.exhaustion import WAITS_PAGE, WAITS_REFERENCE

from ..compiled import compiled
from ..network import (
    BLOCKED,
    BUSY,
    EMPTY,
    STARVED,
    can_pop,
    can_push,
    fail,
    is_bare,
    is_done,
    peek,
    peek_value,
    pop,
    push,
    stop_of,
    token,
)
from .scratchpad import (
    PAGE_FRAMES,
    attach,
    frame_tokens,
    frame_values,
    free_page,
    free_reference,
    is_alone,
    owner_shift,
    request_claim,
    request_close,
    request_take,
    settle,
)

KIND = "bufferize"

BASE, RANK, USES, PASSES, OWNER = 0, 1, 2, 3, 4   # OWNER: what says so in its references
OPEN, HELD, COUNT, PAGE, HOLLOW, WAITS = 0, 1, 2, 3, 4, 5

EXHAUSTED, SHAPE, PROTOCOL = ErrorCode.EXHAUSTED, ErrorCode.SHAPE, ErrorCode.PROTOCOL


def pack(unit, graph, build):
    """``unit.params``: scratchpad, its unit's index; owner (default 0), which it is of those whose references meet.
    ``unit.config``: rank, uses (default 1), hollow (default 0)."""
    par = build.par[unit.index]
    par[BASE] = attach(graph, unit.params["scratchpad"], build)
    par[RANK] = unit.config["rank"]
    par[USES] = unit.config.get("uses", 1)
    par[OWNER] = unit.params.get("owner", 0) << owner_shift(graph, unit.params["scratchpad"])
    par[PASSES] = unit.config.get("hollow", 0)


def value_inputs(unit, graph, port):
    """References are made here."""
    return ()


@compiled
def step(u, par, st, ins, outs, net):
    """One beat a cycle while a reference, a page and, where a buffer ends, the output are free."""
    b = par[BASE]
    settle(net, b)
    st[WAITS] = 0
    if not can_pop(net, ins[0]):
        return STARVED
    heap = net.heap
    tok, value = peek(net, ins[0]), peek_value(net, ins[0])
    if is_done(tok):
        if st[OPEN] == 1 or st[HOLLOW] == 1:
            return fail(net, u, PROTOCOL)
        if not can_push(net, outs[0]):
            return BLOCKED
        push(net, outs[0], tok, 0)
        pop(net, ins[0])
        return BUSY
    bare = is_bare(tok)
    stop = stop_of(tok)
    completes = stop >= par[RANK]
    passes = bare and par[PASSES] == 1
    if (bare and st[OPEN] == 1) or (not bare and st[HOLLOW] == 1) or (passes and stop <= par[RANK]):
        return fail(net, u, SHAPE)
    if passes:
        if not can_push(net, outs[0]):
            return BLOCKED
        push(net, outs[0], EMPTY | (stop - par[RANK]), 0)
        pop(net, ins[0])
        return BUSY

    page_frames = heap[b + PAGE_FRAMES]
    offset = st[COUNT] % page_frames
    page = st[PAGE]
    needs_page = not bare and offset == 0
    if needs_page:
        page = free_page(heap, b)
        if page < 0:
            if st[OPEN] == 1 and is_alone(heap, b):
                return fail(net, u, EXHAUSTED)
            st[WAITS] = WAITS_PAGE
            if st[OPEN] == 0 and free_reference(heap, b) < 0:
                st[WAITS] |= WAITS_REFERENCE
            return BLOCKED
    owner = st[HELD]
    needs_reference = st[OPEN] == 0 and (completes or not bare)
    if needs_reference:
        owner = free_reference(heap, b)
        if owner < 0:
            st[WAITS] = WAITS_REFERENCE
            return BLOCKED
    if completes and not can_push(net, outs[0]):
        return BLOCKED

    pop(net, ins[0])
    if needs_reference:
        request_claim(heap, b, owner)
    if needs_page:
        request_take(heap, b, owner, st[COUNT] // page_frames, page)
        st[PAGE] = page
    count = st[COUNT]
    if not bare:
        frame = page * page_frames + offset
        heap[frame_tokens(heap, b) + frame] = tok
        heap[frame_values(heap, b) + frame] = value
        count += 1
    if completes:
        push(net, outs[0], token(stop - par[RANK], 1), owner | par[OWNER])
        request_close(heap, b, owner, count, par[USES])
        st[OPEN], st[COUNT], st[HOLLOW] = 0, 0, 0
    elif bare:
        st[HOLLOW] = 1
    else:
        st[OPEN], st[HELD], st[COUNT] = 1, owner, count
    return BUSY
