"""drain: takes a stream that nobody uses, at once."""

from ...compiled import compiled
from ..network import LAST, available, field, pop

KIND = "drain"


def pack(op, unit, build):
    """No parameters."""


@compiled
def step(u, par, st, ins, outs, net, now):
    """Take a token."""
    if not available(net, u, ins[0], now):
        return False
    pop(net, ins[0], max(now, field(net, ins[0], LAST)))
    return True
