"""State of the modelled FIFO network: arrays that the compiled step functions share.

Twin of docs/DESIGN.md sections 2 and 3: all decisions of a cycle are taken on the levels at its start
(``avail``, ``space``); pops and pushes show in the next cycle. A token is one int64::

    stop | empty << 4 | done << 5 | rows << 6

and ``value`` carries what steers control downstream (a reference, an address, a selector as `sim.selectors` says), 0
otherwise.
"""

from typing import NamedTuple

import numpy as np

from .compiled import compiled

__all__ = [
    "AVAIL", "BLOCKED", "BUSY", "COUNT", "DEPTH", "DONE", "EMPTY", "IDLE", "MEMORY", "NEED", "PUSHED", "SPACE",
    "STARVED", "STATUSES", "Network", "can_pop", "can_push", "fail", "is_bare", "is_done", "make_network", "peek",
    "peek_value", "pop", "push", "record_level", "stop_of", "token", "with_stop",
]

DEPTH, COUNT, HEAD, AVAIL, SPACE, PUSHED, BASE, NEED, LINK_WORDS = range(9)
"""Columns of ``Network.links``."""

EMPTY = 1 << 4
DONE = 1 << 5
ROWS_SHIFT = 6

# What a unit did in a cycle; per-unit counts of these are the stall accounting.
IDLE, BUSY, STARVED, BLOCKED, MEMORY = 0, 1, 2, 3, 4
STATUSES = ("idle", "busy", "starved", "blocked", "memory")


class Network(NamedTuple):
    """Arrays of all links (L), and of the memory shared by units.

    links : int64 [L, 8]                  columns DEPTH capacity, COUNT current fill, HEAD index of the oldest beat,
                                          AVAIL beats readable and SPACE slots writable in this cycle, PUSHED beats
                                          written so far, BASE first row of its ring, NEED the least capacity that
                                          would have taken every beat when it was written
    ring : int64 [sum of depths, 2]       tokens and values, one link behind the other
    trace : int64 [n, 3]                  (cycle, link, token) of every push when tracing, else [0, 3]; and
                                          (cycle, -1 - unit, pages in use) where a scratchpad's pages change
    misc : int64 [8]                      0: current cycle, 1: trace fill, 2: activity of this cycle, 3: error unit + 1,
                                          4: error code, 5: grants given, 6: cycles without activity, between slices
    heap : int64 [h]                      unit-private memory, offsets given at packing time
    grants : int64 [n, 3]                 (cycle, unit, input) of every grant of an operator that arbitrates
    """

    links: np.ndarray
    ring: np.ndarray
    trace: np.ndarray
    misc: np.ndarray
    heap: np.ndarray
    grants: np.ndarray


def make_network(depths: np.ndarray, heap_size: int, trace_size: int, grants_size: int = 0) -> Network:
    """An empty network of ``len(depths)`` links."""
    n = len(depths)

    def zeros(*shape: int) -> np.ndarray:
        return np.zeros(shape, dtype=np.int64)

    links = zeros(n, LINK_WORDS)
    links[:, DEPTH] = depths
    links[1:, BASE] = np.cumsum(depths)[:-1]
    return Network(links, zeros(int(depths.sum()), 2), zeros(trace_size, 3), zeros(8), zeros(max(heap_size, 1)),
                   zeros(grants_size, 3))


@compiled
def can_pop(net, link):
    """Is a beat at the head of this link?"""
    return net.links[link, AVAIL] > 0


@compiled
def can_push(net, link):
    """Does this link take a beat in this cycle?"""
    return net.links[link, SPACE] > 0


@compiled
def peek(net, link):
    """Token at the head (only when :func:`can_pop`)."""
    return net.ring[net.links[link, BASE] + net.links[link, HEAD], 0]


@compiled
def peek_value(net, link):
    """Control value at the head."""
    return net.ring[net.links[link, BASE] + net.links[link, HEAD], 1]


@compiled
def pop(net, link):
    """Take the head; at most once a cycle and link."""
    h = net.links[link, HEAD] + 1
    net.links[link, HEAD] = 0 if h == net.links[link, DEPTH] else h
    net.links[link, COUNT] -= 1
    net.links[link, AVAIL] = 0
    net.misc[2] += 1


@compiled
def _record(net, who, what):
    """A row of the trace, if there is one."""
    n = net.misc[1]
    if n < net.trace.shape[0]:
        net.trace[n, 0] = net.misc[0]
        net.trace[n, 1] = who
        net.trace[n, 2] = what
        net.misc[1] = n + 1


@compiled
def push(net, link, tok, value):
    """Write a beat; at most once a cycle and link."""
    slot = net.links[link, HEAD] + net.links[link, COUNT]
    if slot >= net.links[link, DEPTH]:
        slot -= net.links[link, DEPTH]
    slot += net.links[link, BASE]
    net.ring[slot, 0] = tok
    net.ring[slot, 1] = value
    need = net.links[link, DEPTH] - net.links[link, SPACE] + 1  # beats in it when the cycle began, and this one
    if need > net.links[link, NEED]:
        net.links[link, NEED] = need
    net.links[link, COUNT] += 1
    net.links[link, SPACE] = 0
    net.links[link, PUSHED] += 1
    net.misc[2] += 1
    _record(net, link, tok)


@compiled
def record_level(net, unit, pages):
    """A scratchpad holds ``pages`` pages from this cycle on."""
    _record(net, -1 - unit, pages)


@compiled
def record_grant(net, unit, k):
    """An arbitrating unit begins to serve its input ``k``."""
    n = net.misc[5]
    if n < net.grants.shape[0]:
        net.grants[n, 0] = net.misc[0]
        net.grants[n, 1] = unit
        net.grants[n, 2] = k
    net.misc[5] = n + 1


@compiled
def fail(net, unit, code):
    """A unit has the error ``code``; the run ends with this cycle. `BLOCKED`, for a unit that does nothing more in
    it."""
    net.misc[3] = unit + 1
    net.misc[4] = code
    return BLOCKED


@compiled
def stop_of(tok):
    """Stop level of a token."""
    return tok & 15


@compiled
def is_done(tok):
    """Is it the end of the stream?"""
    return (tok >> 5) & 1 == 1


@compiled
def is_bare(tok):
    """Is it a bare stop (empty, not done)?"""
    return (tok >> 4) & 3 == 1


@compiled
def with_stop(tok, stop):
    """The same token with another stop level."""
    return (tok & ~15) | stop


@compiled
def token(stop, rows):
    """A fused token."""
    return stop | (rows << ROWS_SHIFT)
