"""Whose turn it is among inputs whose chunks are served whole: rotating priority. Twin of ``step_hw/arbiter.py``, and
of reassemble's list of what it has served; the same at both fidelities.

A unit keeps `LOCKED`, `CURRENT` and `FIRST_IN_TURN` in its state; before the chunk, the last is where the search
begins. A reassemble also keeps `SENT`, whether done has left, and from `SERVED` on a bit for each input.
"""

from .compiled import compiled
from .selectors import selected

__all__ = [
    "CURRENT", "FIRST_IN_TURN", "LOCKED", "OWN", "SENT", "clear_served", "completes", "in_turn", "note_served", "serve",
    "served", "wanted",
]

LOCKED, CURRENT, FIRST_IN_TURN, OWN = range(4)
"""State; a unit's own begins at ``OWN``."""

SENT, SERVED = OWN, OWN + 1
"""Reassemble's own. ``SERVED``: a word for each 32 inputs."""


@compiled
def in_turn(st, n, distance):
    """The input of ``n`` that is asked after ``distance`` others."""
    k = st[FIRST_IN_TURN] + distance
    return k - n if k >= n else k


@compiled
def serve(st, n, k):
    """Begin to serve input ``k`` of ``n``."""
    st[LOCKED] = 1
    st[CURRENT] = k
    st[FIRST_IN_TURN] = 0 if k + 1 == n else k + 1


@compiled
def served(st, k):
    """Has input ``k`` been served?"""
    return (st[SERVED + k // 32] >> (k % 32)) & 1 == 1


@compiled
def note_served(st, k):
    """Input ``k`` has been served."""
    st[SERVED + k // 32] |= 1 << (k % 32)


@compiled
def clear_served(st, n):
    """None of ``n`` inputs has."""
    for word in range(SERVED, SERVED + (n + 31) // 32):
        st[word] = 0


@compiled
def wanted(net, st, value, width, k):
    """Is input ``k`` among those that the selector ``value`` of ``width`` bits names, and not served yet?"""
    return not served(st, k) and selected(net, value, width, k)


@compiled
def completes(net, st, value, width, n, k):
    """Is input ``k`` the only one of ``n`` that is still wanted?"""
    for j in range(n):
        if j != k and wanted(net, st, value, width, j):
            return False
    return True
