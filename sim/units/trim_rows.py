"""Model of ``step_hw/units/trim_rows.py``. A count is its link's value."""

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
    token,
)

KIND = "trim_rows"
STEERED_BY = (1,)

ROWS, TOTAL = 0, 1
WITHIN, HEIGHT, BEGUN, LEFT, DROPPING, HELD = 0, 1, 2, 3, 4, 5
MISALIGNED, SHAPE, PROTOCOL = ErrorCode.MISALIGNED, ErrorCode.SHAPE, ErrorCode.PROTOCOL


def pack(unit, graph, build):
    """Parameters: rows, total."""
    build.par[unit.index, ROWS] = unit.config["rows"]
    build.par[unit.index, TOTAL] = unit.config["total"]


@compiled
def step(u, par, st, ins, outs, net):
    """An input beat a cycle: it leaves, is held or dropped, or lets the held one leave."""
    if not can_pop(net, ins[0]) or not can_pop(net, ins[1]):
        return STARVED
    tok, said, count = peek(net, ins[0]), peek(net, ins[1]), peek_value(net, ins[1])
    stop, rows, total = stop_of(tok), tok >> ROWS_SHIFT, par[TOTAL]
    done = is_done(tok)
    empty = tok & EMPTY != 0
    ends, closes = stop != 0, stop >= 2
    left = count if total == 0 else total - count
    if st[BEGUN] == 1:
        left = st[LEFT]
    enough = left <= rows
    keep = min(left, rows)

    error = 0
    if (empty and st[WITHIN] == 1) or (done and st[BEGUN] == 1):
        error = PROTOCOL
    elif empty and not done and (st[BEGUN] == 1 or stop < 3):
        error = SHAPE
    elif empty != (said & EMPTY != 0) or done != is_done(said) or (closes and stop != stop_of(said) + 2):
        error = MISALIGNED
    elif not empty and st[WITHIN] == 1 and rows != st[HEIGHT]:
        error = MISALIGNED
    elif not empty and ((total != 0 and count > total) or rows > par[ROWS]):
        error = SHAPE
    elif not empty and rows != par[ROWS] and ends and not closes:
        error = SHAPE
    elif not empty and closes and not enough:
        error = SHAPE
    if error != 0:
        return fail(net, u, error)

    dropping = st[DROPPING] == 1
    holds = not empty and ends and not closes and enough and not dropping
    emits = closes if dropping else not holds
    if emits:
        if not can_push(net, outs[0]):
            return BLOCKED
        if dropping:
            push(net, outs[0], token(stop, st[HELD]), 0)
        elif empty:
            push(net, outs[0], tok, 0)
        else:
            push(net, outs[0], token(stop, keep), 0)
    pop(net, ins[0])
    st[WITHIN] = 1 if not empty and not ends else 0
    st[HEIGHT] = rows
    if holds:
        st[DROPPING] = 1
        st[HELD] = keep
    if closes:
        st[BEGUN] = 0
        st[DROPPING] = 0
    elif ends:
        st[BEGUN] = 1
        st[LEFT] = left - keep
    if closes or done:
        pop(net, ins[1])
    return BUSY
