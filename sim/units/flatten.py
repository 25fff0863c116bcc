"""Model of ``step_hw/units/flatten.py``."""

from ..compiled import compiled
from ..network import (
    BLOCKED,
    BUSY,
    STARVED,
    can_pop,
    can_push,
    is_bare,
    peek,
    peek_value,
    pop,
    push,
    stop_of,
    with_stop,
)
from ..values import passes

KIND = "flatten"
value_inputs = passes

LO, HI, RANK = 0, 1, 2
FULL, OPEN, HELD, VALUE = 0, 1, 2, 3


def pack(unit, graph, build):
    """Parameters: lo, hi, rank."""
    build.par[unit.index, LO] = unit.config["lo"]
    build.par[unit.index, HI] = unit.config["hi"]
    build.par[unit.index, RANK] = unit.config["rank"]


@compiled
def step(u, par, st, ins, outs, net):
    """A register; an element whose stop vanished (open) leaves when the beat behind it has been seen, if any stop is
    left for it."""
    present = can_pop(net, ins[0])
    merged = 0
    bare = False
    stop = 0
    tok = 0
    if present:
        tok = peek(net, ins[0])
        stop = stop_of(tok)
        merged = stop
        if stop > par[HI]:
            merged = stop - (par[HI] - par[LO])
        elif stop > par[LO]:
            merged = par[LO]
        bare = is_bare(tok)
    vanishes = bare and merged == 0
    closes = bare and merged != 0 and st[FULL] == 1 and st[OPEN] == 1
    offers = st[FULL] == 1 and (st[OPEN] == 0 or (present and not vanishes))
    leaves = offers and can_push(net, outs[0])
    if leaves:
        push(net, outs[0], with_stop(st[HELD], merged) if closes else st[HELD], st[VALUE])
    takes = present and (vanishes or st[FULL] == 0 or leaves)
    if takes and not vanishes and not closes:
        st[FULL] = 1
        st[OPEN] = 1 if not bare and stop != 0 and merged == 0 and par[HI] != par[RANK] else 0
        st[HELD] = with_stop(tok, merged)
        st[VALUE] = peek_value(net, ins[0])
    elif leaves:
        st[FULL] = 0
    if takes:
        pop(net, ins[0])
    if takes or leaves:
        return BUSY
    return BLOCKED if offers else STARVED
