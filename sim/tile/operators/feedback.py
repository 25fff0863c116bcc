"""feedback: passes on what comes back, at once."""

from ...compiled import compiled
from ..network import COLS, FIRST, LAST, ROWS, TOKEN, VALUE, available, field, pop, push, room

KIND = "feedback"


def pack(op, unit, build):
    """No parameters."""


@compiled
def step(u, par, st, ins, outs, net, now):
    """Pass a token."""
    if not available(net, u, ins[0], now) or not room(net, u, outs[0], now):
        return False
    push(net, outs[0], field(net, ins[0], TOKEN), field(net, ins[0], VALUE), field(net, ins[0], ROWS),
         field(net, ins[0], COLS), field(net, ins[0], FIRST), field(net, ins[0], LAST))
    pop(net, ins[0], now)
    return True
