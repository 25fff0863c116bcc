"""Rotating priority among inputs whose chunks are served whole. Twin of ``step_hw/arbiter.py``.

A unit keeps `LOCKED`, `CURRENT` and `FIRST` in its state; before the chunk, `FIRST` is where the search begins.
"""

from ..compiled import compiled
from ..network import can_pop, is_done, peek, record_grant

LOCKED, CURRENT, FIRST, OWN = 0, 1, 2, 3
"""State; a unit's own begins at ``OWN``."""


@compiled
def waits(net, link):
    """Is there an element (or bare stop) at the head?"""
    return can_pop(net, link) and not is_done(peek(net, link))


@compiled
def grant(u, st, net, n, k):
    """Begin to serve input ``k`` of ``n``."""
    record_grant(net, u, k)
    st[LOCKED] = 1
    st[CURRENT] = k
    st[FIRST] = 0 if k + 1 == n else k + 1
