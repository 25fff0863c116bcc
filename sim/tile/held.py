"""Tokens that a unit holds until it sees what comes behind them."""

from ..compiled import compiled
from .cost import TILE, beats, leaves, leaves_last
from .network import NEVER, push

__all__ = ["HELD", "HELD_END", "HELD_TOKEN", "hold", "release"]

HELD, HELD_TOKEN, HELD_VALUE, HELD_ROWS, HELD_COLS, HELD_FIRST, HELD_LAST, HELD_END = range(8)
"""State: whether a token is held, the token, and when it could have left."""


@compiled
def hold(net, u, st, token, value, rows, cols, start, end):
    """Hold a token that was taken from ``start`` to ``end``. Of several beats all but the last go on at once."""
    st[HELD], st[HELD_TOKEN], st[HELD_VALUE], st[HELD_ROWS], st[HELD_COLS] = 1, token, value, rows, cols
    several = net.cost[u, TILE] > 0 and beats(net, u, rows, cols) > 1
    st[HELD_FIRST] = leaves(net, u, start, end) if several else NEVER
    st[HELD_LAST] = leaves_last(net, u, end)


@compiled
def release(net, st, out, token, seen):
    """What is held leaves as ``token``; what is behind it was seen at ``seen``."""
    last = max(st[HELD_LAST], seen + 1)
    push(net, out, token, st[HELD_VALUE], st[HELD_ROWS], st[HELD_COLS], min(st[HELD_FIRST], last), last)
    st[HELD] = 0
