"""zip: a tuple of two elements. Two control values of 32 bits travel as one of 64, the first lowest."""

from step_lang.errorcodes import ErrorCode

from ...compiled import compiled
from ...values import _is_integer
from ..cost import finish, leaves, leaves_last, meets, starts
from ..network import (
    COLS,
    EMPTY,
    LAST,
    NO_VALUE,
    ROWS,
    TOKEN,
    VALUE,
    available,
    fail,
    field,
    pop,
    push,
    room,
)

KIND = "zip"
MISALIGNED = ErrorCode.MISALIGNED
KNOWN = 0


def pack(op, unit, build):
    """Whether both are integers of at most 32 bits."""
    build.par[unit, KNOWN] = all(_is_integer(stream.type) for stream in op.inputs)


@compiled
def step(u, par, st, ins, outs, net, now):
    """Join two tokens."""
    ready = available(net, u, ins[0], now)
    ready = available(net, u, ins[1], now) and ready
    if not ready or not room(net, u, outs[0], now):
        return False
    token = field(net, ins[0], TOKEN)
    if field(net, ins[1], TOKEN) != token:
        return fail(net, u, MISALIGNED)
    start = meets(net, u, ins[1], 1, meets(net, u, ins[0], 0, starts(net, u, outs[0])))
    end = finish(net, u, start, max(field(net, ins[0], LAST), field(net, ins[1], LAST)), 1)
    a, b = field(net, ins[0], VALUE), field(net, ins[1], VALUE)
    value = NO_VALUE
    if par[KNOWN] != 0 and a != NO_VALUE and b != NO_VALUE:
        value = (a & 0xFFFFFFFF) | (b << 32)
    rows, cols = field(net, ins[0], ROWS), field(net, ins[0], COLS)
    if token & EMPTY:
        value = 0
    push(net, outs[0], token, value, rows, cols, leaves(net, u, start, end), leaves_last(net, u, end))
    pop(net, ins[0], end + 1)
    pop(net, ins[1], end + 1)
    return True
