"""Channels of the hardware's off-chip memory, cycle by cycle: ports put elements into the channels' queues, each
channel serves the ports in turn. Twin of ``step_hw.hbm.channel``, on elements instead of bursts."""

from ..compiled import compiled
from .memory import (
    ASKS_AT,
    BURSTS,
    CHANNELS,
    GROUPS,
    INNER,
    INNER_STRIDE,
    LEFT,
    MEMORY_WORDS,
    NEXT,
    OUTER_STRIDE,
    PACE,
    PER_BURST,
    PORT_UNIT,
    PORT_WORDS,
    PORTS,
    PORTS_AT,
    QUEUE_DEPTH,
    QUEUE_WORDS,
    QUEUES,
    REQUEST_WORDS,
    SLACK,
    SPAN,
    TAKEN,
    TICKS,
    TICKS_A_BURST,
    WAIT_HEAD,
    WAITING,
    asked,
    completion_of_next,
    served,
)
from .network import NEVER, wake

__all__ = ["serve_elements"]


@compiled
def _group(heap, port):
    """The group of channels on which the port's next element lies."""
    inner = heap[port + INNER]
    k = heap[port + NEXT]
    at = port + PORT_WORDS + heap[port + WAIT_HEAD] * REQUEST_WORDS
    index = heap[at + 1] + k % inner * heap[port + INNER_STRIDE] + k // inner * heap[port + OUTER_STRIDE]
    return index // heap[port + PER_BURST] % heap[port + GROUPS]


@compiled
def _serve_channel(net, memory, c, now):
    """Begin to serve the next port in turn at channel ``c``: that port, whose element still has its place in the queue;
    -1 if nothing waits or the channel is at work."""
    heap = net.heap
    ticks, free = heap[memory + TICKS], memory + MEMORY_WORDS + c
    if (heap[free] - heap[memory + SLACK]) // ticks > now:
        return -1
    ports, table, channels = heap[memory + PORTS], heap[memory + PORTS_AT], heap[memory + CHANNELS]
    turn = heap[free + channels]     # the port that the channel served last
    for _ in range(ports):
        turn = 0 if turn + 1 >= ports else turn + 1
        port = heap[table + turn]
        queue = heap[port + QUEUES] + QUEUE_WORDS * c
        if heap[queue] == 0:
            continue
        work = heap[port + BURSTS] * heap[memory + TICKS_A_BURST]
        start = max(heap[free], now * ticks)
        heap[free] = start + work
        heap[free + channels] = turn
        at = heap[queue + 1]
        served(heap, memory, port, at, start // ticks, (start + work - heap[memory + TICKS_A_BURST]) // ticks)
        heap[at + 2] -= 1
        if heap[at + 2] == 0:
            wake(net, heap[port + PORT_UNIT], now)
        return port
    return -1


@compiled
def _leave(heap, memory, port, c):
    """The element that is served leaves the port's queue at channel ``c``."""
    queue = heap[port + QUEUES] + QUEUE_WORDS * c
    heap[queue] -= 1
    for i in range(1, QUEUE_DEPTH):
        heap[queue + i] = heap[queue + i + 1]
    heap[memory + MEMORY_WORDS + 2 * heap[memory + CHANNELS] + c] -= 1


@compiled
def _ask(net, memory, port, now):
    """Put the port's next element into the queues of its channels, as each has room; whether one had."""
    heap = net.heap
    span = heap[port + SPAN]
    first = _group(heap, port) * span
    at = completion_of_next(heap, port)
    waiting = memory + MEMORY_WORDS + 2 * heap[memory + CHANNELS]
    moved = False
    everywhere = True
    for i in range(span):
        queue = heap[port + QUEUES] + QUEUE_WORDS * (first + i)
        if (heap[port + TAKEN] >> i) & 1 == 1:
            continue
        if heap[queue] == QUEUE_DEPTH:
            everywhere = False
            continue
        heap[queue] += 1
        heap[queue + heap[queue]] = at
        heap[waiting + first + i] += 1
        heap[port + TAKEN] |= 1 << i
        moved = True
    if everywhere:
        heap[port + TAKEN] = 0
        heap[port + LEFT] -= 1
        heap[port + NEXT] += 1
        heap[port + ASKS_AT] = now + heap[port + PACE]
        if heap[port + LEFT] == 0:
            asked(net, memory, port, now)
    return moved


@compiled
def serve_elements(net, u, memory, now):
    """A cycle of all channels and ports: what a channel begins to serve leaves its queue, and what a port puts into one
    can be served, from the next cycle on."""
    heap = net.heap
    channels, ticks = heap[memory + CHANNELS], heap[memory + TICKS]
    free, waiting, leaving = (memory + MEMORY_WORDS, memory + MEMORY_WORDS + 2 * channels,
                              memory + MEMORY_WORDS + 3 * channels)
    again = NEVER
    for c in range(channels):
        heap[leaving + c] = -1
        if heap[waiting + c] > 0:
            heap[leaving + c] = _serve_channel(net, memory, c, now)
    for k in range(heap[memory + PORTS]):
        port = heap[heap[memory + PORTS_AT] + k]
        if heap[port + WAITING] > 0:
            if heap[port + ASKS_AT] > now:
                again = min(again, heap[port + ASKS_AT])
            elif _ask(net, memory, port, now):
                again = now + 1
    for c in range(channels):
        if heap[leaving + c] >= 0:
            _leave(heap, memory, heap[leaving + c], c)
            again = now + 1     # its port may ask again
        elif heap[waiting + c] > 0:
            again = min(again, max(now + 1, (heap[free + c] - heap[memory + SLACK]) // ticks))
    if again < NEVER:
        wake(net, u, max(again, now + 1))
    net.free[u] = now + 1
    return False
