"""Model of ``step_hw/units/unpack_rows.py``."""

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
    pop,
    push,
    stop_of,
    token,
)

KIND = "unpack_rows"

N = 0
FILLING, AT, ROWS, BEGUN, FILLED, DRAINING, ROW, SENT = 0, 1, 2, 3, 4, 5, 6, 7
FULL, COUNTS, CLOSING, KNOWN = 8, 10, 12, 14  # of each bank
MISALIGNED, SHAPE, PROTOCOL = ErrorCode.MISALIGNED, ErrorCode.SHAPE, ErrorCode.PROTOCOL


def pack(unit, graph, build):
    """Parameter: n."""
    build.par[unit.index, N] = unit.config["n"]


@compiled
def step(u, par, st, ins, outs, net):
    """A beat into the bank that fills, one out of the bank that drains."""
    present = can_pop(net, ins[0])
    tok = peek(net, ins[0]) if present else 0
    stop, rows = stop_of(tok), tok >> ROWS_SHIFT
    done = present and is_done(tok)
    bare = present and not done and tok & EMPTY != 0
    fused = present and not done and not bare
    error = 0
    if (bare or done) and st[AT] != 0:
        error = PROTOCOL
    elif fused and st[AT] != 0 and rows != st[ROWS]:
        error = MISALIGNED
    elif bare and (stop < 3 or st[BEGUN] == 1):
        error = SHAPE
    elif fused and (stop != 0) != (st[AT] + 1 == par[N]):
        error = SHAPE
    if error != 0:
        fail(net, u, error)
        done = bare = fused = False  # what is full still drains

    filling, draining = st[FILLING], st[DRAINING]
    hollow = fused and rows == 0
    begins = fused and not hollow and st[AT] == 0
    takes = bare or (fused and (not hollow or (stop >= 3 and st[FILLED] == 0)))
    accepts = (bare or fused) and (not takes or st[FULL + filling] == 0)
    passes = done and st[FULL] == 0 and st[FULL + 1] == 0
    moved = False
    drains = False
    freed = -1
    if st[FULL + draining] == 1:
        count = st[COUNTS + draining]
        last_tile = count == 0 or st[SENT] + 1 == par[N]
        last = count == 0 or (last_tile and st[ROW] + 1 == count)
        drains = not last or st[KNOWN + draining] == 1 or begins or done
        if drains and can_push(net, outs[0]):
            closing = st[CLOSING + draining]
            if count == 0:
                push(net, outs[0], EMPTY | closing, 0)
            elif last:
                push(net, outs[0], token(closing, 1), 0)
            else:
                push(net, outs[0], token(1 if last_tile else 0, 1), 0)
            st[SENT] = 0 if last_tile else st[SENT] + 1
            if last:
                st[ROW] = 0
                freed = draining
            elif last_tile:
                st[ROW] += 1
            moved = True
    elif passes:
        drains = True
        if can_push(net, outs[0]):
            push(net, outs[0], tok, 0)
            pop(net, ins[0])
            st[BEGUN] = 0
            st[FILLED] = 0
            return BUSY

    if accepts:
        pop(net, ins[0])
        moved = True
        if begins:
            st[KNOWN + 1 - filling] = 1
        if hollow and stop >= 3 and st[FILLED] == 1:
            st[KNOWN + 1 - filling] = 1
            st[CLOSING + 1 - filling] = stop - 1
        st[AT] = 0 if stop != 0 else st[AT] + 1
        st[ROWS] = rows
        st[BEGUN] = 1 if stop < 3 else 0
        st[FILLED] = 1 if stop < 3 and (st[FILLED] == 1 or not hollow) else 0
        if takes and stop != 0:
            st[FULL + filling] = 1
            st[COUNTS + filling] = rows
            st[CLOSING + filling] = stop - 1 if stop >= 3 else 1
            st[KNOWN + filling] = 1 if stop >= 3 else 0
            st[FILLING] = 1 - filling
    if freed >= 0:
        st[FULL + freed] = 0
        st[DRAINING] = 1 - freed
    if moved:
        return BUSY
    return BLOCKED if drains else STARVED
