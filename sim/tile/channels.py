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
    SPAN,
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
    """Begin to serve the next port in turn at channel ``c``; whether there was one."""
    heap = net.heap
    ports, table, ticks = heap[memory + PORTS], heap[memory + PORTS_AT], heap[memory + TICKS]
    channels = heap[memory + CHANNELS]
    last = memory + MEMORY_WORDS + channels + c     # the port that the channel served last
    turn = heap[last]
    for _ in range(ports):
        turn = 0 if turn + 1 >= ports else turn + 1
        port = heap[table + turn]
        queue = heap[port + QUEUES] + QUEUE_WORDS * c
        if heap[queue] == 0:
            continue
        at = heap[queue + 1]
        heap[queue] -= 1
        for i in range(1, QUEUE_DEPTH):
            heap[queue + i] = heap[queue + i + 1]
        work = heap[port + BURSTS] * heap[memory + TICKS_A_BURST]
        start = max(heap[memory + MEMORY_WORDS + c], now * ticks)
        heap[memory + MEMORY_WORDS + c] = start + work
        served(heap, memory, port, at, start // ticks, (start + work - heap[memory + TICKS_A_BURST]) // ticks)
        heap[at + 2] -= 1
        if heap[at + 2] == 0:
            wake(net, heap[port + PORT_UNIT], now)
        heap[last] = turn
        return True
    return False


@compiled
def _ask(net, memory, port, now):
    """Put the port's next element into the queues of its channels, if all have room; whether it could."""
    heap = net.heap
    span = heap[port + SPAN]
    first = _group(heap, port) * span
    for i in range(first, first + span):
        if heap[heap[port + QUEUES] + QUEUE_WORDS * i] == QUEUE_DEPTH:
            return False
    at = completion_of_next(heap, port)
    waiting = memory + MEMORY_WORDS + 2 * heap[memory + CHANNELS]
    for i in range(first, first + span):
        queue = heap[port + QUEUES] + QUEUE_WORDS * i
        heap[queue] += 1
        heap[queue + heap[queue]] = at
        heap[waiting + i] += 1
    heap[port + LEFT] -= 1
    heap[port + NEXT] += 1
    heap[port + ASKS_AT] = now + heap[port + PACE]
    if heap[port + LEFT] == 0:
        asked(net, memory, port, now)
    return True


@compiled
def serve_elements(net, u, memory, now):
    """A cycle of all channels and ports."""
    heap = net.heap
    channels, ticks = heap[memory + CHANNELS], heap[memory + TICKS]
    waiting = memory + MEMORY_WORDS + 2 * channels
    again = NEVER
    for c in range(channels):
        if heap[waiting + c] > 0:
            if heap[memory + MEMORY_WORDS + c] // ticks <= now and _serve_channel(net, memory, c, now):
                heap[waiting + c] -= 1
            if heap[waiting + c] > 0:
                again = min(again, max(now + 1, heap[memory + MEMORY_WORDS + c] // ticks))
    for k in range(heap[memory + PORTS]):
        port = heap[heap[memory + PORTS_AT] + k]
        if heap[port + WAITING] > 0:
            if heap[port + ASKS_AT] > now:
                again = min(again, heap[port + ASKS_AT])
            elif _ask(net, memory, port, now):
                again = now + 1
    if again < NEVER:
        wake(net, u, max(again, now + 1))
    net.free[u] = now + 1
    return False
