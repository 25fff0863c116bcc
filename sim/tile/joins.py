"""Units that take one element of each input together."""

from ..compiled import compiled
from .cost import comes, meets, whole
from .network import COLS, ROWS, TOKEN, available, field

__all__ = ["all_there", "join", "sizes"]


@compiled
def all_there(net, u, n, ins, now):
    """Is a token at the head of each of ``n`` inputs, as far as the unit needs it to begin? If not, it is woken."""
    ready = True
    for k in range(n):
        ready = available(net, u, ins[k], now) and whole(net, u, ins[k], k, now) and ready
    return ready


@compiled
def join(net, u, n, ins, start):
    """When the unit begins with the heads, ``start`` at the earliest, and when the last beat of all is there: -1 where
    they are different tokens."""
    last = 0
    token = field(net, ins[0], TOKEN)
    for k in range(n):
        if field(net, ins[k], TOKEN) != token:
            return start, -1
        start = meets(net, u, ins[k], k, start)
        last = max(last, comes(net, u, ins[k], k))
    return start, last


@compiled
def sizes(net, n, ins):
    """Rows and columns of the element at the head of the first of ``n`` inputs, then of the last."""
    first, other = ins[0], ins[n - 1]
    return field(net, first, ROWS), field(net, first, COLS), field(net, other, ROWS), field(net, other, COLS)
