"""What units share that serve whole chunks of an input in turn, which is `sim.turns`."""

from ..compiled import compiled
from ..network import can_pop, is_done, peek, record_grant
from ..turns import serve

__all__ = ["grant", "waits"]


@compiled
def waits(net, link):
    """Is there an element (or bare stop) at the head?"""
    return can_pop(net, link) and not is_done(peek(net, link))


@compiled
def grant(u, st, net, n, k):
    """Begin to serve input ``k`` of ``n``."""
    record_grant(net, u, k)
    serve(st, n, k)
