"""Model of ``step_hw/units/flat_map.py``."""

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
    token,
    with_stop,
)
from ..values import passes

KIND = "flat_map"
STEERED_BY = (0,)
value_inputs = passes

LOOPS = 6
FORM, BASE, SCALE, DIMS, STRIDE, COUNTS, STRIDES = 0, 1, 2, 3, 4, 8, 16
AFFINE, RANGE, COUNT = 0, 1, 2
_FORMS = {"affine_addresses": AFFINE, "address_range": RANGE, "counter": COUNT}
# State: the register before the output, and how far the element is: addresses made, each loop's round.
FULL, OPEN, HELD, VALUE, MADE, ROUNDS = 0, 1, 2, 3, 4, 8
STOP_RANGE, ADDRESS_RANGE = ErrorCode.STOP_RANGE, ErrorCode.ADDRESS_RANGE
U32 = (1 << 32) - 1


def _signed(word: int) -> int:
    return word - (1 << 32) if word >> 31 else word


def pack(unit, graph, build):
    """``unit.params["function"]``; the function's registers."""
    par, config = build.par[unit.index], unit.config
    par[FORM] = _FORMS[unit.params["function"].name]
    par[STRIDE] = 1
    if par[FORM] == RANGE:
        par[STRIDE] = _signed(config["stride"])
    elif par[FORM] == AFFINE:
        par[[BASE, SCALE, DIMS]] = _signed(config["base"]), _signed(config["scale"]), config["dims"]
        for k in range(LOOPS):
            par[COUNTS + k] = config.get(f"count{k}", 1)
            par[STRIDES + k] = _signed(config.get(f"stride{k}", 0))


@compiled
def _count(par, element):
    """Addresses that an element of a range becomes; 1 for an affine block, which has its own counters."""
    if par[FORM] == AFFINE:
        return 1
    return element & U32 if par[FORM] == COUNT else (element >> 32) & U32


@compiled
def _address(par, st, element):
    """The next address, out of range as it may be."""
    if par[FORM] == AFFINE:
        address = par[BASE] + element * par[SCALE]
        for k in range(par[DIMS]):
            address += st[ROUNDS + k] * par[STRIDES + k]
        return address
    return (element & U32 if par[FORM] == RANGE else 0) + st[MADE] * par[STRIDE]


@compiled
def _wraps(par, st):
    """How many innermost loops of an affine block end here."""
    k = 0
    while k < par[DIMS] and st[ROUNDS + k] + 1 >= par[COUNTS + k]:
        k += 1
    return k


@compiled
def _step(par, st, last):
    """To the next address; after the last one, to the first."""
    if par[FORM] != AFFINE:
        st[MADE] = 0 if last else st[MADE] + 1
        return
    k = _wraps(par, st)
    for i in range(k):
        st[ROUNDS + i] = 0
    if not last:
        st[ROUNDS + k] += 1


@compiled
def step(u, par, st, ins, outs, net):
    """A register; an address without stop (open) leaves when the beat behind it has been seen."""
    have = can_pop(net, ins[0])
    tok = 0
    value = 0
    empty = True
    done = False
    nothing = False
    last = True
    if have:
        head = peek(net, ins[0])
        element = peek_value(net, ins[0])
        done = is_done(head)
        empty = head & EMPTY != 0
        levels = par[DIMS] - 1 if par[FORM] == AFFINE else 0
        if not empty:
            nothing = _count(par, element) == 0
            if par[FORM] == AFFINE:
                last = _wraps(par, st) == par[DIMS]
            else:
                last = nothing or st[MADE] + 1 == _count(par, element)
        stop = 0
        if done or (nothing and stop_of(head) == 0):
            stop = 0
        elif empty or last:
            stop = stop_of(head) + levels
        elif par[FORM] == AFFINE:
            stop = _wraps(par, st)
        code = 0
        if stop > 15:
            code = STOP_RANGE
        if done:
            tok = head
        elif empty or nothing:
            tok = with_stop(EMPTY, stop & 15)
        else:
            value = _address(par, st, element)
            tok = token(stop & 15, 1)
            if code == 0 and (value < 0 or value > U32):
                code = ADDRESS_RANGE
        if code != 0:
            fail(net, u, code)
            have = False
    bare = have and not done and (empty or nothing)
    vanishes = bare and stop_of(tok) == 0
    closes = bare and stop_of(tok) != 0 and st[FULL] == 1 and st[OPEN] == 1
    offers = st[FULL] == 1 and (st[OPEN] == 0 or (have and not vanishes))
    leaves = offers and can_push(net, outs[0])
    if leaves:
        push(net, outs[0], with_stop(st[HELD], stop_of(tok)) if closes else st[HELD], st[VALUE])
    takes = have and (vanishes or st[FULL] == 0 or leaves)
    if takes and not vanishes and not closes:
        st[FULL] = 1
        st[OPEN] = 1 if par[FORM] != AFFINE and tok & EMPTY == 0 and stop_of(tok) == 0 else 0
        st[HELD] = tok
        st[VALUE] = value
    elif leaves:
        st[FULL] = 0
    if takes:
        net.misc[2] += 1
        if not empty and not nothing:
            _step(par, st, last)
        if empty or nothing or last:
            pop(net, ins[0])
    if takes or leaves:
        return BUSY
    return BLOCKED if offers else STARVED
