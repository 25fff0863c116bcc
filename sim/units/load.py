"""Model of ``step_hw/units/load.py``: address generator and reorder window."""

import numpy as np

from step_lang.errorcodes import ErrorCode

from ..compiled import compiled
from ..memory import (
    ARRIVES,
    BASE,
    BURSTS,
    COUNT0,
    DIMS,
    ELEMENTS_END,
    GROUPS,
    LIMIT,
    MISSING,
    PER_BURST,
    POSITION_END,
    QUEUE_WORDS,
    QUEUES,
    SLOT_WORDS,
    SLOTS,
    SPAN,
    TOKEN,
    VALUE,
    WAITING,
    WINDOW,
    affine_index,
    affine_last,
    affine_step,
    affine_wraps,
    pack_affine,
    pack_elements,
    queue_push,
    queue_room,
)
from ..network import (
    BLOCKED,
    BUSY,
    DONE,
    EMPTY,
    IDLE,
    MEMORY,
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
from ..selectors import pack_selectors

KIND = "load"

# Parameters beyond the view and the elements: form (0 without reference, 1 with, 2 by addresses), rows of a full tile,
# cycle in which a load without reference begins, offset of the token list (-1: the view's own) and of the control
# values by element (-1: none).
REF, ROWS, BEGIN, TOKENS, VALUES = range(ELEMENTS_END, ELEMENTS_END + 5)
# State beyond the position in the view.
PHASE, TAKEN, HEAD, TAIL, LEVEL, SHOWN, SHOWN_TOKEN, SHOWN_VALUE, LISTED, ELEMENT = range(
    POSITION_END, POSITION_END + 10
)
VIEW, ENDING, OVER = 0, 1, 2
BY_ADDRESS = 2

ADDRESS_RANGE = ErrorCode.ADDRESS_RANGE


def pack(unit, graph, build):
    """``unit.params``: element_bytes, window, port, ref, and for benches ``start`` (cycle in which it begins, 0) and
    ``values`` (what each element of the tensor says: a reference, an address, a selector's bits)."""
    par = build.par[unit.index]
    par[REF] = int(bool(unit.params.get("ref", bool(unit.inputs))))
    pack_affine(par, unit.config)
    pack_window(unit, graph, build)
    par[BEGIN] = unit.params.get("start", 0)
    tokens = unit.params.get("tokens")
    listed = not unit.config.get("regular", 1)
    par[TOKENS] = build.reserve(len(tokens), np.asarray(tokens)) if listed else -1


def pack_window(unit, graph, build):
    """The elements, their window and what leaves it, for every unit that loads."""
    par, values = build.par[unit.index], unit.params.get("values")
    pack_elements(unit, graph, build, window=unit.params["window"])
    par[ROWS] = graph.links[unit.outputs[0]].payload.max_rows
    par[VALUES] = -1
    if values is not None:
        said = pack_selectors(build, values, graph.links[unit.outputs[0]].payload.data_bits)
        par[VALUES] = build.reserve(len(said), np.asarray(said, dtype=np.int64))


def value_inputs(unit, graph, port):
    """Values that the host gave; what is in a tensor is not known."""
    return () if unit.params.get("values") is not None else None


@compiled
def _view_token(par, st, closing):
    """Token (without rows) of the present position; ``closing`` is the stop with which the view ends."""
    tok = closing if affine_last(par, st) else affine_wraps(par, st)
    if par[DIMS] > 0:
        for k in range(par[DIMS]):
            if par[COUNT0 + k] == 0:
                return tok | EMPTY
    return tok


@compiled
def _nothing(par):
    """Is the stream of a load without reference empty?"""
    for k in range(1, par[DIMS]):
        if par[COUNT0 + k] == 0:
            return True
    return par[DIMS] == 1 and par[COUNT0] == 0


@compiled
def _request(par, st, net, index):
    """Offer the element to its channels; True when all have taken it."""
    place = index // par[PER_BURST]
    group = place % par[GROUPS]
    line = par[BASE] + place // par[GROUPS] * par[BURSTS]
    whole = True
    for c in range(group * par[SPAN], (group + 1) * par[SPAN]):
        if (st[TAKEN] >> c) & 1 == 0:
            queue = par[QUEUES] + c * QUEUE_WORDS
            if queue_room(net, queue):
                queue_push(net, queue, par[WAITING] + c, line, st[TAIL])
                st[TAKEN] |= 1 << c
            else:
                whole = False
    return whole


@compiled
def step(u, par, st, ins, outs, net):
    """Make a token, let the first whole one out."""
    now = net.misc[0]
    heap = net.heap
    level = st[LEVEL]
    pushes = st[SHOWN] == 1 and can_push(net, outs[0])
    leaves = False
    if level > 0 and (st[SHOWN] == 0 or pushes):
        first = par[WINDOW] + st[HEAD] * SLOT_WORDS
        leaves = heap[first + TOKEN] & EMPTY != 0 or (heap[first + MISSING] == 0 and heap[first + ARRIVES] < now)

    # What token is to be made?
    have = False
    starved = False
    tok = 0
    index = affine_index(st)
    if par[REF] != 0:
        if can_pop(net, ins[0]):
            have = True
            tok = peek(net, ins[0]) & 63
            if par[REF] == BY_ADDRESS:
                index = peek_value(net, ins[0])
            elif is_done(tok):
                pass
            elif tok & EMPTY:
                tok += par[DIMS]
            else:
                tok = _view_token(par, st, par[DIMS] + stop_of(tok))
        else:
            starved = True
    elif now >= par[BEGIN]:
        if par[TOKENS] >= 0:
            have = st[PHASE] == VIEW
            if have:
                tok = heap[par[TOKENS] + st[LISTED]]
                index = st[ELEMENT]
        elif st[PHASE] == VIEW:
            if _nothing(par):
                st[PHASE] = ENDING
            else:
                have = True
                tok = _view_token(par, st, max(0, par[DIMS] - 1))
        elif st[PHASE] == ENDING:
            have = True
            tok = EMPTY | DONE
    offered = have and level < par[SLOTS]
    advance = False
    before = st[TAKEN]
    if offered:
        if tok & EMPTY:
            advance = True
        elif index < 0 or index >= par[LIMIT]:
            fail(net, u, ADDRESS_RANGE)
        else:
            advance = _request(par, st, net, index)
    moved = st[TAKEN] != before

    # Window and output.
    if pushes:
        push(net, outs[0], st[SHOWN_TOKEN], st[SHOWN_VALUE])
        st[SHOWN] = 0
        moved = True
    if leaves:
        first = par[WINDOW] + st[HEAD] * SLOT_WORDS
        st[SHOWN] = 1
        st[SHOWN_TOKEN] = heap[first + TOKEN]
        st[SHOWN_VALUE] = heap[first + VALUE]
        if heap[first + TOKEN] & EMPTY == 0:
            heap[first + MISSING] = par[BURSTS] * par[SPAN]
        heap[first + ARRIVES] = 0
        st[HEAD] = (st[HEAD] + 1) % par[SLOTS]
        st[LEVEL] -= 1
        net.misc[2] += 1
        moved = True
    if advance:
        entry = par[WINDOW] + st[TAIL] * SLOT_WORDS
        fused = tok & EMPTY == 0
        heap[entry + TOKEN] = tok | (par[ROWS] << ROWS_SHIFT) if fused else tok
        heap[entry + VALUE] = heap[par[VALUES] + index] if fused and par[VALUES] >= 0 else 0
        st[TAIL] = (st[TAIL] + 1) % par[SLOTS]
        st[LEVEL] += 1
        st[TAKEN] = 0
        net.misc[2] += 1
        moved = True
        _advance(par, st, ins, net, tok)
    if moved:
        return BUSY
    if st[SHOWN] == 1:
        return BLOCKED
    if st[LEVEL] > 0 or have:
        return MEMORY
    return STARVED if starved else IDLE


@compiled
def _advance(par, st, ins, net, tok):
    """Go past the token just made."""
    if par[REF] != 0:
        if par[REF] == BY_ADDRESS or peek(net, ins[0]) & EMPTY:
            pop(net, ins[0])
        else:
            if affine_last(par, st):
                pop(net, ins[0])
            affine_step(par, st)
    elif par[TOKENS] >= 0:
        st[LISTED] += 1
        st[ELEMENT] += 1 - (tok & EMPTY) // EMPTY
        if tok & DONE:
            st[PHASE] = OVER
    elif st[PHASE] == ENDING:
        st[PHASE] = OVER
    else:
        if affine_last(par, st):
            st[PHASE] = ENDING
        affine_step(par, st)
