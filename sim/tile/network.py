"""State of a modelled run at tile fidelity: arrays that the compiled operators share.

Time is in cycles. A token is ``stop | empty << 4 | done << 5`` (as in `sim.network`, without rows), a control value
(`sim.values`), the rows and columns of its tile, and when its consumer may begin and end to take it, ``FIRST`` and
``LAST`` (the same where a tile is handed over whole). What a channel holds leaves in order; a place that was taken is
free for the next token from the cycle in which its consumer has taken it.

An operator is woken when a token can be taken, a place gets free, or at a time it asked for. Events of one cycle are
handled in the order of operators.
"""

from typing import NamedTuple

import numpy as np

from ..compiled import compiled

__all__ = [
    "BUFFER_WORDS", "COLS", "DONE", "EMPTY", "FIELDS", "FIRST", "LAST", "NEVER", "NODE_WORDS", "NO_VALUE", "ROWS",
    "TOKEN", "VALUE", "Tiles", "announce", "announced", "append", "available", "change_uses", "fail", "field",
    "is_bare", "is_done", "link_free", "make_tiles", "new_buffer", "next_event", "place_time", "pop", "push",
    "record_bytes", "record_grant", "record_work", "room", "stop_of", "wake",
]

TOKEN, VALUE, ROWS, COLS, FIRST, LAST, FIELDS = range(7)
EMPTY, DONE = 1 << 4, 1 << 5
NEVER = 1 << 62
NO_VALUE = -(1 << 62)
"""The control value of an element that the model does not compute: steering by it is an error."""

HEAD, COUNT, CAPACITY, BASE, SOURCE, SINK, PUSHED, STREAM, ANNOUNCED, CHANNEL_WORDS = range(10)
"""A channel. ``STREAM``: the stream whose tokens are recorded as they are pushed, -1 for none. ``ANNOUNCED``: when the
first beat of a token is there which is pushed later, because its end is not known yet; -1 for none."""

(TRACED, ERROR_UNIT, ERROR, GRANTED, HEAP_SIZE, FREE_NODE, NODES_LEFT, FREE_BUFFER, BUFFERS_LEFT, EVENTS,
 NOW, WHY, SLICED, GAP, BUFFER_BYTES, WIDTH, MISC) = range(17)

OTHER, STARVED, BLOCKED, WAITS = range(4)
"""What a unit waits for: something else (the memory, a free buffer), a token, a place."""
AFTER, REASON = 0, 1
"""Of a unit: from when on it waits, and for what."""
READ, WRITTEN, MOST_BUFFERED, BUFFERED, CURVES = range(5)
"""Rows of ``curves``: bytes read and written off-chip, the most bytes in on-chip buffers, and those at the end (-1 for
a bucket in which they did not change)."""

NODE_WORDS = 5
"""Of a token in a buffer: token, value, rows, columns, next."""
NODE_NEXT = 4
BUFFER_WORDS = 6
"""A buffer: first node, last node, tokens, uses left, bytes, record of its bufferize."""
RECORD_UNIT, RECORD_LIVE, RECORD_BYTES, RECORD_PEAK, RECORD_FREED, RECORD_PAGE, RECORD_WORDS = range(7)
"""A record of a bufferize, on the heap: its unit, live buffers, their bytes, the most there were; from when on the one
that was freed last is free; bytes of a page, each of which is given back in a cycle, 0 where that takes no time."""


class Tiles(NamedTuple):
    """Arrays of a run, all int64.

    channels [C, CHANNEL_WORDS], places [sum of capacities, FIELDS], freed [same]: when a place was taken
    free, busy, fired, flops [units] : when a unit may act again; cycles of work; actions; FLOPs
    wakes [units] : the time a unit is to be woken; events [n, 2] : a binary heap of (time, unit)
    heap : words of the units; grants [n, 3] : (time, unit, input)
    trace [n, 6] : (stream, token, rows, columns, first, last) of every token
    nodes, buffers : contents of on-chip buffers, free ones linked
    cost [units, COSTS] : see `sim.tile.cost`
    stalls [units, WAITS] : cycles of waiting between actions; waiting [units, 2] : since when, and for what
    slices [n, 4] : (unit, begin, end, work) of actions, merged where at most ``misc[GAP]`` apart; latest [units] : each
    unit's last slice. curves [CURVES, n] : over time, ``misc[WIDTH]`` cycles a bucket, doubled as a run outgrows them.
    Neither is recorded where it has no room.
    """

    channels: np.ndarray
    places: np.ndarray
    freed: np.ndarray
    free: np.ndarray
    busy: np.ndarray
    fired: np.ndarray
    flops: np.ndarray
    wakes: np.ndarray
    events: np.ndarray
    heap: np.ndarray
    trace: np.ndarray
    grants: np.ndarray
    nodes: np.ndarray
    buffers: np.ndarray
    cost: np.ndarray
    misc: np.ndarray
    stalls: np.ndarray
    waiting: np.ndarray
    slices: np.ndarray
    latest: np.ndarray
    curves: np.ndarray


def make_tiles(capacities: np.ndarray, ends: np.ndarray, streams: np.ndarray, units: int, heap: np.ndarray,
               cost: np.ndarray, *, trace_size: int, grants: int, nodes: int, buffers: int, slices: int = 0,
               buckets: int = 0) -> Tiles:
    """An empty network. ``ends``: source and sink of each channel; ``slices``, ``buckets``: room to record these."""

    def zeros(*shape: int) -> np.ndarray:
        return np.zeros(shape, dtype=np.int64)

    channels = zeros(len(capacities), CHANNEL_WORDS)
    channels[:, CAPACITY] = capacities
    channels[1:, BASE] = np.cumsum(capacities)[:-1]
    channels[:, [SOURCE, SINK]] = ends
    channels[:, STREAM] = streams
    channels[:, ANNOUNCED] = -1
    total = int(capacities.sum())
    misc = zeros(MISC)
    misc[[GAP, WIDTH]] = -1, 1
    curves = zeros(CURVES, buckets)
    curves[[MOST_BUFFERED, BUFFERED]] = -1
    made = Tiles(channels, zeros(total, FIELDS), zeros(total), zeros(units), zeros(units), zeros(units), zeros(units),
                 np.full(units, NEVER, dtype=np.int64), zeros(16 * units + 1024, 2), heap, zeros(trace_size, 6),
                 zeros(grants, 3), zeros(nodes, NODE_WORDS), zeros(buffers, BUFFER_WORDS), cost, misc,
                 zeros(units, WAITS), zeros(units, 2), zeros(slices, 4), np.full(units, -1, dtype=np.int64), curves)
    link_free(made, 0, 0)
    return made


def link_free(net: Tiles, node: int, buffer: int) -> None:
    """Put nodes from ``node`` and buffers from ``buffer`` on the free lists."""
    for array, first, head, left, word in ((net.nodes, node, FREE_NODE, NODES_LEFT, NODE_NEXT),
                                           (net.buffers, buffer, FREE_BUFFER, BUFFERS_LEFT, 0)):
        count = len(array) - first
        if not count:
            continue
        array[first:, word] = np.arange(first + 1, len(array) + 1)
        array[-1, word] = net.misc[head] if net.misc[left] else -1
        net.misc[head] = first
        net.misc[left] += count


# Events


@compiled
def wake(net, u, time):
    """Have unit ``u`` woken at ``time``, if it is not earlier anyway."""
    if time >= net.wakes[u]:
        return
    net.wakes[u] = time
    events = net.events
    i = net.misc[HEAP_SIZE]
    net.misc[HEAP_SIZE] = i + 1
    while i > 0:
        parent = (i - 1) >> 1
        if events[parent, 0] < time or (events[parent, 0] == time and events[parent, 1] <= u):
            break
        events[i, 0] = events[parent, 0]
        events[i, 1] = events[parent, 1]
        i = parent
    events[i, 0] = time
    events[i, 1] = u


@compiled
def next_event(net):
    """Take the first event off the heap: its unit, or -1 where it was woken earlier since; the time is in ``events``'s
    last row."""
    events = net.events
    time, u = events[0, 0], events[0, 1]
    n = net.misc[HEAP_SIZE] - 1
    net.misc[HEAP_SIZE] = n
    t, v = events[n, 0], events[n, 1]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= n:
            break
        other = child + 1
        if other < n and (events[other, 0] < events[child, 0] or (
                events[other, 0] == events[child, 0] and events[other, 1] < events[child, 1])):
            child = other
        if t < events[child, 0] or (t == events[child, 0] and v <= events[child, 1]):
            break
        events[i, 0] = events[child, 0]
        events[i, 1] = events[child, 1]
        i = child
    events[i, 0] = t
    events[i, 1] = v
    if net.wakes[u] != time:
        return -1, time
    net.wakes[u] = NEVER
    return u, time


# Channels


@compiled
def available(net, u, channel, now):
    """May ``u`` begin to take the token at the head? If it comes later, ``u`` is woken then."""
    if net.channels[channel, COUNT] == 0:
        net.misc[WHY] = STARVED
        return False
    first = net.places[net.channels[channel, BASE] + net.channels[channel, HEAD], FIRST]
    if first > now:
        net.misc[WHY] = STARVED
        wake(net, u, first)
        return False
    return True


@compiled
def field(net, channel, which):
    """A field of the token at the head."""
    return net.places[net.channels[channel, BASE] + net.channels[channel, HEAD], which]


@compiled
def pop(net, channel, time):
    """Take the head, whose place is free from ``time`` on."""
    c = net.channels
    h = c[channel, HEAD]
    net.freed[c[channel, BASE] + h] = time
    h += 1
    c[channel, HEAD] = 0 if h == c[channel, CAPACITY] else h
    c[channel, COUNT] -= 1
    wake(net, c[channel, SOURCE], time)


@compiled
def _next_place(net, channel):
    """Row of ``places`` that the next token gets, if there is room."""
    c = net.channels
    place = c[channel, HEAD] + c[channel, COUNT]
    if place >= c[channel, CAPACITY]:
        place -= c[channel, CAPACITY]
    return c[channel, BASE] + place


@compiled
def room(net, u, channel, now):
    """Is there a place? If one gets free later, ``u`` is woken then. An output that nobody uses has room."""
    if channel < 0:
        return True
    c = net.channels
    if c[channel, COUNT] == c[channel, CAPACITY]:
        net.misc[WHY] = BLOCKED
        return False
    time = place_time(net, channel)
    if time > now:
        net.misc[WHY] = BLOCKED
        wake(net, u, time)
        return False
    return True


@compiled
def place_time(net, channel):
    """When the place that the next token gets is free."""
    return net.freed[_next_place(net, channel)]


@compiled
def announce(net, channel, time):
    """The token that will be pushed next begins at ``time``."""
    if channel >= 0:
        net.channels[channel, ANNOUNCED] = time
        wake(net, net.channels[channel, SINK], time)


@compiled
def announced(net, u, channel, now):
    """Does the next token begin by now, be it there or announced? If it is announced for later, ``u`` is woken then."""
    if net.channels[channel, COUNT] > 0:
        return available(net, u, channel, now)
    time = net.channels[channel, ANNOUNCED]
    if time > now:
        wake(net, u, time)
    return 0 <= time <= now


@compiled
def push(net, channel, token, value, rows, cols, first, last):
    """Write a token (only when there is `room`)."""
    if channel < 0:
        return
    c = net.channels
    place = _next_place(net, channel)
    p = net.places
    p[place, TOKEN] = token
    p[place, VALUE] = value
    p[place, ROWS] = rows
    p[place, COLS] = cols
    p[place, FIRST] = first
    p[place, LAST] = last
    c[channel, COUNT] += 1
    c[channel, PUSHED] += 1
    c[channel, ANNOUNCED] = -1
    wake(net, c[channel, SINK], max(first, net.misc[NOW]))
    stream = c[channel, STREAM]
    if stream >= 0:
        n = net.misc[TRACED]
        if n < net.trace.shape[0]:
            net.trace[n, 0] = stream
            net.trace[n, 1] = token
            net.trace[n, 2] = rows
            net.trace[n, 3] = cols
            net.trace[n, 4] = first
            net.trace[n, 5] = last
        net.misc[TRACED] = n + 1


# Units


@compiled
def fail(net, u, code):
    """Raise an error code; the run ends."""
    if net.misc[ERROR] == 0:
        net.misc[ERROR_UNIT] = u
        net.misc[ERROR] = code
    return False


@compiled
def record_grant(net, u, k, now):
    """An arbitrating unit begins to serve its input ``k``."""
    n = net.misc[GRANTED]
    if n < net.grants.shape[0]:
        net.grants[n, 0] = now
        net.grants[n, 1] = u
        net.grants[n, 2] = k
    net.misc[GRANTED] = n + 1


@compiled
def record_work(net, u, begin, end, work):
    """A unit takes from ``begin`` to ``end``, both included, for ``work`` cycles of work."""
    net.busy[u] += work
    net.fired[u] += 1
    waiting, stalls = net.waiting, net.stalls
    if begin > waiting[u, AFTER]:
        stalls[u, waiting[u, REASON]] += begin - waiting[u, AFTER]
    stalls[u, STARVED] += max(0, end + 1 - max(begin, waiting[u, AFTER]) - work)
    waiting[u, AFTER] = max(waiting[u, AFTER], end + 1)
    waiting[u, REASON] = STARVED
    slices = net.slices
    if slices.shape[0] == 0:
        return
    i = net.latest[u]
    if i < 0 or begin > slices[i, 2] + net.misc[GAP]:
        i = net.misc[SLICED]
        net.misc[SLICED] = i + 1
        net.latest[u] = i
        slices[i, 0] = u
        slices[i, 1] = begin
    slices[i, 2] = max(slices[i, 2], end + 1)
    slices[i, 3] += work


@compiled
def bucket_of(net, time):
    """The bucket of a time, for which buckets are made wider if need be."""
    curves = net.curves
    n = curves.shape[1]
    while time // net.misc[WIDTH] >= n:
        net.misc[WIDTH] *= 2
        for i in range(n):
            a, b = 2 * i, 2 * i + 1
            inside = b < n
            for row in range(CURVES):
                if row == READ or row == WRITTEN:
                    curves[row, i] = curves[row, a] + curves[row, b] if inside else 0
                elif row == MOST_BUFFERED:
                    curves[row, i] = max(curves[row, a], curves[row, b]) if inside else -1
                else:
                    curves[row, i] = (curves[row, b] if curves[row, b] >= 0 else curves[row, a]) if inside else -1
    return time // net.misc[WIDTH]


@compiled
def record_bytes(net, row, begin, end, nbytes):
    """Off-chip bytes from cycle ``begin`` to ``end``, both included."""
    if net.curves.shape[1] == 0:
        return
    to = bucket_of(net, end)
    at = bucket_of(net, begin)
    share = nbytes // (to - at + 1)
    for i in range(at, to):
        net.curves[row, i] += share
    net.curves[row, to] += nbytes - share * (to - at)


@compiled
def record_buffered(net, more):
    """``more`` bytes (or fewer) are in on-chip buffers from now on."""
    net.misc[BUFFER_BYTES] += more
    if net.curves.shape[1] == 0:
        return
    i = bucket_of(net, net.misc[NOW])
    net.curves[MOST_BUFFERED, i] = max(net.curves[MOST_BUFFERED, i], net.misc[BUFFER_BYTES])
    net.curves[BUFFERED, i] = net.misc[BUFFER_BYTES]


@compiled
def stop_of(token):
    """Stop level of a token."""
    return token & 15


@compiled
def is_done(token):
    """Is it the end of the stream?"""
    return (token >> 5) & 1 == 1


@compiled
def is_bare(token):
    """Is it a bare stop?"""
    return (token >> 4) & 3 == 1


# Buffers


@compiled
def new_buffer(net, record):
    """An empty buffer of the bufferize with this record, which holds its one use."""
    b = net.misc[FREE_BUFFER]
    net.misc[FREE_BUFFER] = net.buffers[b, 0]
    net.misc[BUFFERS_LEFT] -= 1
    net.buffers[b, 0] = -1
    net.buffers[b, 1] = -1
    net.buffers[b, 2] = 0
    net.buffers[b, 3] = 1
    net.buffers[b, 4] = 0
    net.buffers[b, 5] = record
    net.heap[record + RECORD_LIVE] += 1
    return b


@compiled
def append(net, b, token, value, rows, cols, nbytes):
    """Put a token at the end of buffer ``b``."""
    n = net.misc[FREE_NODE]
    net.misc[FREE_NODE] = net.nodes[n, NODE_NEXT]
    net.misc[NODES_LEFT] -= 1
    net.nodes[n, 0] = token
    net.nodes[n, 1] = value
    net.nodes[n, 2] = rows
    net.nodes[n, 3] = cols
    net.nodes[n, NODE_NEXT] = -1
    if net.buffers[b, 0] < 0:
        net.buffers[b, 0] = n
    else:
        net.nodes[net.buffers[b, 1], NODE_NEXT] = n
    net.buffers[b, 1] = n
    net.buffers[b, 2] += 1
    net.buffers[b, 4] += nbytes
    record_buffered(net, nbytes)
    record = net.buffers[b, 5]
    net.heap[record + RECORD_BYTES] += nbytes
    if net.heap[record + RECORD_BYTES] > net.heap[record + RECORD_PEAK]:
        net.heap[record + RECORD_PEAK] = net.heap[record + RECORD_BYTES]


@compiled
def change_uses(net, b, more, now):
    """``more`` (or fewer) uses of buffer ``b``; the last frees it."""
    net.buffers[b, 3] += more
    if net.buffers[b, 3] > 0:
        return
    record = net.buffers[b, 5]
    net.heap[record + RECORD_LIVE] -= 1
    net.heap[record + RECORD_FREED] = now
    if net.heap[record + RECORD_PAGE] > 0:
        net.heap[record + RECORD_FREED] += -(-net.buffers[b, 4] // net.heap[record + RECORD_PAGE])
    net.heap[record + RECORD_BYTES] -= net.buffers[b, 4]
    record_buffered(net, -net.buffers[b, 4])
    wake(net, net.heap[record + RECORD_UNIT], now)
    last = net.buffers[b, 1]
    if last >= 0:
        net.nodes[last, NODE_NEXT] = net.misc[FREE_NODE]
        net.misc[FREE_NODE] = net.buffers[b, 0]
        net.misc[NODES_LEFT] += net.buffers[b, 2]
    net.buffers[b, 0] = net.misc[FREE_BUFFER]
    net.misc[FREE_BUFFER] = b
    net.misc[BUFFERS_LEFT] += 1
