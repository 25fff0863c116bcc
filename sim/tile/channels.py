"""Channels of the hardware's off-chip memory, cycle by cycle: ports put elements into the channels' queues, each
channel serves the ports in turn. Twin of ``step_hw.hbm.channel``, on elements instead of bursts."""

from ..banked import LEVEL, banked_push, banked_step
from ..compiled import compiled
from .memory import (
    ASKS_AT,
    BANK_WORDS,
    BANKED,
    BANKS_AT,
    BASE_LINE,
    BURSTS,
    CHANNELS,
    FIRST_BURST,
    FIRST_READ,
    GROUPS,
    INNER,
    INNER_STRIDE,
    LATENCY,
    LEFT,
    MEMORY_WORDS,
    NEXT,
    OUTER_STRIDE,
    PARTS,
    PER_BURST,
    PORT_UNIT,
    PORT_WORDS,
    PORT_WRITES,
    PORTS,
    PORTS_AT,
    QUEUE_DEPTH,
    QUEUE_WORDS,
    QUEUES,
    REQUEST_WORDS,
    ROOM,
    SPAN,
    TAKEN,
    TICKS,
    TICKS_A_BURST,
    WAIT_HEAD,
    WAITING,
    asked,
    completed,
    completion_of_next,
    next_port,
    served,
)
from .network import NEVER, wake

__all__ = ["serve_elements"]


@compiled
def _element(heap, port):
    """Number of the port's next element in the tensor."""
    inner = heap[port + INNER]
    k = heap[port + NEXT]
    at = port + PORT_WORDS + heap[port + WAIT_HEAD] * REQUEST_WORDS
    return heap[at + 1] + k % inner * heap[port + INNER_STRIDE] + k // inner * heap[port + OUTER_STRIDE]


@compiled
def _served_parts(net, port, at, parts, now):
    """``parts`` of the completion ``at`` are served: its unit is woken with the last."""
    net.heap[at + PARTS] -= parts
    if net.heap[at + PARTS] == 0:
        wake(net, net.heap[port + PORT_UNIT], now)


@compiled
def _serve_channel(net, memory, c, now):
    """Begin to serve the next port in turn at channel ``c``: that port, whose element still has its place in the queue;
    -1 if nothing waits or the channel is at work."""
    heap = net.heap
    ticks, free = heap[memory + TICKS], memory + MEMORY_WORDS + c
    if heap[free] < 0:      # it starts up when something waits for the first time
        heap[free] = (now - 1 - heap[free]) * ticks
    if heap[free] // ticks > now:
        return -1
    turn = next_port(heap, memory, heap[free + heap[memory + CHANNELS]], c, now)
    if turn < 0:
        return -1
    port = heap[heap[memory + PORTS_AT] + turn]
    work = heap[port + BURSTS] * heap[memory + TICKS_A_BURST]
    start = max(heap[free], now * ticks)
    heap[free] = start + work
    heap[free + heap[memory + CHANNELS]] = turn
    queue = heap[port + QUEUES] + QUEUE_WORDS * c
    at = heap[queue + 1]
    if heap[port + PORT_WRITES] == 0 and heap[memory + FIRST_READ] < 0:
        heap[memory + FIRST_READ] = start // ticks
    ended = (start + work - heap[memory + TICKS_A_BURST]) // ticks
    served(heap, memory, port, at, ended, ended, heap[queue + 1 + 2 * QUEUE_DEPTH])
    _served_parts(net, port, at, heap[port + BURSTS], now)
    return port


@compiled
def _serve_banks(net, memory, c, now):
    """A cycle of channel ``c`` with banks: its scheduler does what it can, and takes a burst of the port whose turn it
    is. Returns that port where the burst is its element's last, else -1."""
    heap = net.heap
    channels, ports, table = heap[memory + CHANNELS], heap[memory + PORTS], heap[memory + PORTS_AT]
    bank = heap[memory + BANKS_AT] + c * heap[memory + BANK_WORDS]
    room = heap[bank + LEVEL] < heap[memory + ROOM]
    if banked_step(heap, heap[memory + BANKED], bank, now, now) > 0:
        for k in range(ports):      # some read is there
            port = heap[table + k]
            if completed(net, port):
                wake(net, heap[port + PORT_UNIT], now)
    if not room:
        return -1
    begun = memory + MEMORY_WORDS + 4 * channels + c
    last = memory + MEMORY_WORDS + channels + c
    turn = heap[last] if heap[begun] > 0 else next_port(heap, memory, heap[last], c, now)
    if turn < 0:
        return -1
    heap[last] = turn
    port = heap[table + turn]
    queue = heap[port + QUEUES] + QUEUE_WORDS * c
    if heap[queue] == 0:
        return -1
    at = heap[queue + 1]
    writes = heap[port + PORT_WRITES]
    banked_push(heap, heap[memory + BANKED], bank, heap[queue + 1 + QUEUE_DEPTH] + heap[begun], writes, at)
    if writes != 0:
        served(heap, memory, port, at, now, now, -1)
        _served_parts(net, port, at, 1, now)
    else:
        if heap[memory + FIRST_READ] < 0:
            heap[memory + FIRST_READ] = now
        if heap[at + FIRST_BURST] < 0:
            heap[at + FIRST_BURST] = now + heap[memory + LATENCY]
    heap[begun] += 1
    if heap[begun] < heap[port + BURSTS]:
        return -1
    heap[begun] = 0
    return port


@compiled
def _leave(heap, memory, port, c):
    """The element that is served leaves the port's queue at channel ``c``."""
    queue = heap[port + QUEUES] + QUEUE_WORDS * c
    heap[queue] -= 1
    for i in range(1, QUEUE_DEPTH):
        heap[queue + i] = heap[queue + i + 1]
        heap[queue + i + QUEUE_DEPTH] = heap[queue + i + 1 + QUEUE_DEPTH]
        heap[queue + i + 2 * QUEUE_DEPTH] = heap[queue + i + 1 + 2 * QUEUE_DEPTH]
    heap[memory + MEMORY_WORDS + 2 * heap[memory + CHANNELS] + c] -= 1


@compiled
def _ask(net, memory, port, now):
    """Put the port's next element into the queues of its channels, as each has room; whether one had."""
    heap = net.heap
    span, groups, per_burst = heap[port + SPAN], heap[port + GROUPS], heap[port + PER_BURST]
    index = _element(heap, port)
    first = index // per_burst % groups * span
    line = heap[port + BASE_LINE] + index // (groups * per_burst) * heap[port + BURSTS]
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
        heap[queue + heap[queue] + QUEUE_DEPTH] = line
        heap[queue + heap[queue] + 2 * QUEUE_DEPTH] = heap[port + LEFT] - 1
        heap[waiting + first + i] += 1
        heap[port + TAKEN] |= 1 << i
        moved = True
    if everywhere:
        heap[port + TAKEN] = 0
        heap[port + LEFT] -= 1
        heap[port + NEXT] += 1
        at = port + PORT_WORDS + heap[port + WAIT_HEAD] * REQUEST_WORDS
        due = heap[at + 3] + heap[port + NEXT] * heap[at + 4] // max(1, heap[at] - 1)
        heap[port + ASKS_AT] = max(now + 1, due)
        if heap[port + LEFT] == 0:
            asked(net, memory, port, now)
    return moved


@compiled
def serve_elements(net, u, memory, now):
    """A cycle of all channels and ports: what a channel begins to serve leaves its queue, and what a port puts into one
    can be served, from the next cycle on."""
    heap = net.heap
    channels, ticks, banked = heap[memory + CHANNELS], heap[memory + TICKS], heap[memory + BANKED] > 0
    free, waiting, leaving = (memory + MEMORY_WORDS, memory + MEMORY_WORDS + 2 * channels,
                              memory + MEMORY_WORDS + 3 * channels)
    again = NEVER
    for c in range(channels):
        heap[leaving + c] = -1
        if banked:
            if heap[waiting + c] > 0 or heap[heap[memory + BANKS_AT] + c * heap[memory + BANK_WORDS] + LEVEL] > 0:
                heap[leaving + c] = _serve_banks(net, memory, c, now)
                again = now + 1
        elif heap[waiting + c] > 0:
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
        elif heap[waiting + c] > 0 and not banked:
            again = min(again, max(now + 1, heap[free + c] // ticks))
    if again < NEVER:
        wake(net, u, max(again, now + 1))
    net.free[u] = now + 1
    return False
