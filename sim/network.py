"""State of the modelled FIFO network: arrays that the compiled step functions share.

Twin of docs/DESIGN.md sections 2 and 3: all decisions of a cycle are taken on the levels at its start
(``avail``, ``space``); pops and pushes show in the next cycle. A token is one int64::

    stop | empty << 4 | done << 5 | rows << 6

and ``value`` carries what steers control downstream (a reference, an address, a selector), 0 otherwise.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

__all__ = [
    "BLOCKED", "BUSY", "DONE", "EMPTY", "IDLE", "MEMORY", "STARVED", "STATUSES", "Network", "can_pop", "can_push",
    "is_bare", "is_done", "make_network", "peek", "peek_value", "pop", "push", "stop_of", "token", "with_stop",
]

EMPTY = 1 << 4
DONE = 1 << 5
ROWS_SHIFT = 6

# What a unit did in a cycle; per-unit counts of these are the stall accounting.
IDLE, BUSY, STARVED, BLOCKED, MEMORY = 0, 1, 2, 3, 4
STATUSES = ("idle", "busy", "starved", "blocked", "memory")


class Network(NamedTuple):
    """Arrays of all links (L), and of the memory shared by units.

    depth, count, head : int64 [L]        capacity, current fill, index of the oldest beat
    avail, space : int64 [L]              beats readable and slots writable in this cycle
    tok, val : int64 [L, max depth]       ring buffers
    pushed : int64 [L]                    beats written so far
    trace : int64 [n, 3]                  (cycle, link, token) of every push when tracing, else [0, 3]
    misc : int64 [8]                      0: current cycle, 1: trace fill, 2: activity of this cycle, 3: error unit + 1, 4: error code
    heap : int64 [h]                      unit-private memory, offsets given at packing time
    """

    depth: np.ndarray
    count: np.ndarray
    head: np.ndarray
    avail: np.ndarray
    space: np.ndarray
    tok: np.ndarray
    val: np.ndarray
    pushed: np.ndarray
    trace: np.ndarray
    misc: np.ndarray
    heap: np.ndarray


def make_network(depths: np.ndarray, heap_size: int, trace_size: int) -> Network:
    """An empty network of ``len(depths)`` links."""
    n = len(depths)
    widest = int(depths.max()) if n else 1

    def zeros(*shape: int) -> np.ndarray:
        return np.zeros(shape, dtype=np.int64)

    return Network(depths.astype(np.int64), zeros(n), zeros(n), zeros(n), zeros(n), zeros(n, widest), zeros(n, widest),
                   zeros(n), zeros(trace_size, 3), zeros(8), zeros(max(heap_size, 1)))


@njit(inline="always")
def can_pop(net, link):
    """Is a beat at the head of this link?"""
    return net.avail[link] > 0


@njit(inline="always")
def can_push(net, link):
    """Does this link take a beat in this cycle?"""
    return net.space[link] > 0


@njit(inline="always")
def peek(net, link):
    """Token at the head (only when :func:`can_pop`)."""
    return net.tok[link, net.head[link]]


@njit(inline="always")
def peek_value(net, link):
    """Control value at the head."""
    return net.val[link, net.head[link]]


@njit(inline="always")
def pop(net, link):
    """Take the head; at most once a cycle and link."""
    h = net.head[link] + 1
    net.head[link] = 0 if h == net.depth[link] else h
    net.count[link] -= 1
    net.avail[link] = 0
    net.misc[2] += 1


@njit(inline="always")
def push(net, link, tok, value):
    """Write a beat; at most once a cycle and link."""
    slot = net.head[link] + net.count[link]
    if slot >= net.depth[link]:
        slot -= net.depth[link]
    net.tok[link, slot] = tok
    net.val[link, slot] = value
    net.count[link] += 1
    net.space[link] = 0
    net.pushed[link] += 1
    net.misc[2] += 1
    n = net.misc[1]
    if n < net.trace.shape[0]:
        net.trace[n, 0] = net.misc[0]
        net.trace[n, 1] = link
        net.trace[n, 2] = tok
        net.misc[1] = n + 1


@njit(inline="always")
def stop_of(tok):
    """Stop level of a token."""
    return tok & 15


@njit(inline="always")
def is_done(tok):
    """Is it the end of the stream?"""
    return (tok >> 5) & 1 == 1


@njit(inline="always")
def is_bare(tok):
    """Is it a bare stop (empty, not done)?"""
    return (tok >> 4) & 3 == 1


@njit(inline="always")
def with_stop(tok, stop):
    """The same token with another stop level."""
    return (tok & ~15) | stop


@njit(inline="always")
def token(stop, rows):
    """A fused token."""
    return stop | (rows << ROWS_SHIFT)
