"""Model of ``step_hw/units/pack_rows.py``."""

from step_lang.errorcodes import ErrorCode

from ..compiled import compiled
from ..network import BLOCKED, BUSY, EMPTY, STARVED, can_pop, can_push, fail, is_done, peek, pop, push, stop_of, token

KIND = "pack_rows"

N, ROWS = 0, 1
FILLING, AT, ROW, INSIDE, DRAINING, SENT = 0, 1, 2, 3, 4, 5
FULL, COUNTS, CLOSING = 6, 8, 10  # of each bank
SHAPE, PROTOCOL = ErrorCode.SHAPE, ErrorCode.PROTOCOL


def pack(unit, graph, build):
    """Parameters: n, rows."""
    build.par[unit.index, N] = unit.config["n"]
    build.par[unit.index, ROWS] = unit.config["rows"]


@compiled
def step(u, par, st, ins, outs, net):
    """A beat into the bank that fills, one out of the bank that drains."""
    present = can_pop(net, ins[0])
    tok = peek(net, ins[0]) if present else 0
    stop = stop_of(tok)
    done = present and is_done(tok)
    bare = present and not done and tok & EMPTY != 0
    error = 0
    if (done or bare) and st[AT] != 0:
        error = PROTOCOL
    elif bare and (stop < 2 or st[INSIDE] == 1):
        error = SHAPE
    elif present and not bare and not done and (stop != 0) != (st[AT] + 1 == par[N]):
        error = SHAPE
    if error != 0:
        fail(net, u, error)
        present = done = bare = False  # what is full still drains

    filling, draining = st[FILLING], st[DRAINING]
    drains = st[FULL + draining] == 1
    passes = done and st[ROW] == 0 and st[FULL] == 0 and st[FULL + 1] == 0
    accepts = present and not done and st[FULL + filling] == 0
    moved = False
    if drains and can_push(net, outs[0]):
        last = st[SENT] + 1 == par[N]
        push(net, outs[0], token(st[CLOSING + draining] if last else 0, max(1, st[COUNTS + draining])), 0)
        st[SENT] += 1
        if last:
            st[SENT] = 0
            st[FULL + draining] = 0
            st[DRAINING] = 1 - draining
        moved = True
    elif passes and can_push(net, outs[0]):
        push(net, outs[0], tok, 0)
        pop(net, ins[0])
        st[INSIDE] = 0
        return BUSY

    completes = done and st[ROW] != 0
    count = st[ROW]
    if accepts:
        pop(net, ins[0])
        moved = True
        st[INSIDE] = 1 if stop < 2 else 0
        st[AT] = 0 if stop != 0 else st[AT] + 1
        if stop != 0:
            st[ROW] += 1
            count = 0 if bare else st[ROW]
            completes = stop >= 2 or st[ROW] == par[ROWS]
    if completes:
        st[FULL + filling] = 1
        st[COUNTS + filling] = count
        st[CLOSING + filling] = 1 if done else stop
        st[FILLING] = 1 - filling
        st[ROW] = 0
        moved = True
    if moved:
        return BUSY
    return BLOCKED if drains or passes else STARVED
