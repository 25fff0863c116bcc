"""Off-chip memory at tile fidelity: linear bursts in bulk, channels shared by all operators.

Every load, store and input stream is a port, whose requests are served in order; the memory serves ports in turn. A
channel takes a burst every ``interval`` cycles. What is served in one go:

* a roofline machine: ``grain`` bursts of a tile, which lies on consecutive addresses, interleaved over the channels,
  as soon as a channel is free;
* the hardware: one physical tile, an element of docs/DESIGN.md section 7, by the channels on which its place in the
  tensor puts it (`step_lang.memory_config.ElementLayout`). A port asks for its elements in order, one a cycle, as long
  as fewer than ``QUEUE_DEPTH`` of them wait at any of these channels; each channel serves the ports in turn, cycle by
  cycle (`sim.tile.channels`).

With banks, the hardware's channels are those of `sim.banked`. To a roofline machine the interval is that of open rows,
stretched by the share of time that refreshes take (linear streams open the next row in another bank while they read
the present one), and the latency is that of a row which must be opened.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from step_lang.memory_config import MemoryConfig

from ..banked import banked_parameters, banked_words
from ..compiled import compiled
from ..memory import ARRIVES, MISSING
from .network import wake

__all__ = [
    "FIRST_READ", "LAST_WRITE", "MEMORY_WORDS", "PORT_WORDS", "READ_BYTES", "WRITE_BYTES", "SharedMemory",
    "completed", "completion_first", "completion_last", "first_element", "list_ports", "next_port",
    "request", "requests_room", "serve_bursts", "take_completion",
]

QUEUE_DEPTH = 2
"""Elements of a port that wait at a channel (``step_hw.hbm.channel``)."""
QUEUE_WORDS = 1 + 3 * QUEUE_DEPTH
"""Of a port at a channel: how many wait, and of each its completion, its first line, and how many elements of its tile
come behind it."""

(PORT_UNIT, PORT_WRITES, DEPTH, WAIT_HEAD, WAITING, LEFT, NEXT, DONE_HEAD, COMPLETED, BURSTS, SPAN, GROUPS, PER_BURST,
 INNER, INNER_STRIDE, OUTER_STRIDE, QUEUES, ASKS_AT, TAKEN, BASE_LINE, PORT_WORDS) = range(21)
"""A port: its unit, whether it writes, requests it may have; those not yet asked for whole; of the first of them the
bursts or elements left and the next one's number; where completions begin, and how many there are. ``BURSTS`` is 0
where bursts are asked for; else an element's bursts on each of its ``SPAN`` channels, ``GROUPS`` of these, elements to
a burst; elements of a tile: ``INNER`` with a stride in the tensor's elements, these with another; where the queues of
its channels lie; when the port asks again; which of an element's channels
have taken it; the tensor's first line. Behind it ``DEPTH`` requests of (count, first, bytes, time, span: cycles from
the first element to the last) and as many completions."""
REQUEST_WORDS, COMPLETION_WORDS = 5, 4
PARTS, LAST_BURST, FIRST_BURST, MORE = MISSING, ARRIVES, 2, 3
"""A completion: parts to come, when the last and the first burst are there, and elements behind the first one. The
first two are what `sim.banked` counts in a slot."""

(UNIT, PORTS, PORTS_AT, TURN, CHANNELS, GRAIN, LATENCY, TICKS, TICKS_A_BURST, READ_BYTES, WRITE_BYTES, FIRST_READ,
 LAST_WRITE, BANKED, BANKS_AT, BANK_WORDS, ROOM, MEMORY_WORDS) = range(18)
"""The memory: its unit, ports and where they are listed, the port served last, channels, bursts served in one go,
cycles from a burst to its data, ticks to a cycle and to a burst (so that intervals need not be whole cycles), counters;
with banks, where the parameters of `sim.banked` and the channels' words lie, how many these are, and bursts that a
scheduler chooses from."""

_TICKS = 64


@dataclass(frozen=True)
class SharedMemory:
    """Where the memory lies on the heap."""

    at: int
    config: MemoryConfig

    def bursts(self, nbytes: int) -> int:
        """Bursts of ``nbytes``."""
        return -(-nbytes // self.config.burst_bytes)


def memory_timing(memory: MemoryConfig) -> tuple[float, int]:
    """Cycles from burst to burst of a channel in a linear stream, and from a burst's request to its data."""
    if memory.model == "simple":
        return float(memory.interval), memory.latency
    interval = float(max(memory.bl, memory.tccd))
    row = max(1, memory.row_bytes // memory.burst_bytes) * interval
    interval *= max(1.0, memory.trrd / row, memory.tfaw / (4 * row))
    if memory.trefi:
        interval *= memory.trefi / max(1, memory.trefi - memory.trfc)
    return interval, memory.trcd + memory.cl


def make_memory(memory: MemoryConfig, unit: int, ports: int, grain: int, elements: bool, build: Any) -> SharedMemory:
    """Reserve the memory's words; ``grain`` in bursts; ``elements``: it is asked for elements."""
    interval, latency = memory_timing(memory)
    table = build.reserve(ports)
    # Behind it, of each channel: the ticks at which it is free (elements: below 0 before the first, -1 - start-up),
    # the port served last, elements
    # that wait, the port whose element leaves, bursts begun of an element.
    at = build.reserve(MEMORY_WORDS + 5 * memory.channels)
    words = np.zeros(MEMORY_WORDS + memory.channels, dtype=np.int64)
    words[[UNIT, PORTS_AT, CHANNELS, GRAIN, LATENCY, TICKS, TICKS_A_BURST]] = (
        unit, table, memory.channels, grain, latency, _TICKS, math.ceil(interval * _TICKS - 1e-9))
    words[[FIRST_READ, LAST_WRITE]] = -1
    if memory.model == "banked" and elements:
        values, each = banked_parameters(memory), banked_words(memory)
        words[BANKED] = build.reserve(len(values), values)
        words[[BANKS_AT, BANK_WORDS, ROOM]] = build.reserve(memory.channels * each), each, memory.queue
    words[MEMORY_WORDS:] = -1 - memory.startup if elements else memory.startup * _TICKS
    build.preset(at, words)
    return SharedMemory(at, memory)


def make_port(shared: SharedMemory, unit: int, writes: bool, depth: int, build: Any,
              elements: Sequence[int] | None = None, base: int = 0) -> int:
    """Reserve a port of the memory; its offset. ``elements``: bytes of an element, inner elements of a tile, inner and
    outer stride; None where bursts are asked for. ``base``: address of the tensor."""
    at = build.reserve(PORT_WORDS + depth * (REQUEST_WORDS + COMPLETION_WORDS), [unit, writes, depth])
    if elements is not None:
        nbytes, *order = elements
        layout = shared.config.layout(nbytes)
        queues = build.reserve(QUEUE_WORDS * shared.config.channels)
        build.preset(at + BASE_LINE, [base // shared.config.alignment])
        build.preset(at + BURSTS, [layout.bursts, layout.span, layout.groups, layout.per_burst, *order, queues])
    build.ports[bool(writes)].append(at)
    return at


def list_ports(shared: SharedMemory, build: Any) -> None:
    """Number the ports, those that read first, as the hardware does."""
    listed = [*build.ports[False], *build.ports[True]]
    build.preset(build.word(shared.at + PORTS_AT), listed)
    build.preset(shared.at + PORTS, [len(listed)])


@compiled
def requests_room(net, port):
    """May the port ask for more?"""
    heap = net.heap
    return heap[port + WAITING] + heap[port + COMPLETED] < heap[port + DEPTH]


@compiled
def request(net, memory, port, count, first, nbytes, time, span):
    """Ask for ``count`` bursts from burst number ``first`` of the memory on, or elements from ``first`` of the tensor
    on, of which ``nbytes`` are useful: from ``time`` on, elements evenly over ``span`` cycles more at the earliest."""
    heap = net.heap
    place = (heap[port + WAIT_HEAD] + heap[port + WAITING]) % heap[port + DEPTH]
    at = port + PORT_WORDS + place * REQUEST_WORDS
    heap[at] = count
    heap[at + 1] = first
    heap[at + 2] = nbytes
    heap[at + 3] = time
    heap[at + 4] = span
    if heap[port + WAITING] == 0:
        _begin(heap, port, at)
    heap[port + WAITING] += 1
    wake(net, heap[memory + UNIT], time)


@compiled
def first_element(net, grid, index):
    """The first physical tile of tile ``index`` of a tensor; ``grid``: where (tiles in a row, physical tiles down and
    across a tile) lie on the heap."""
    row, col = index // net.heap[grid], index % net.heap[grid]
    across = net.heap[grid + 2]
    return row * net.heap[grid + 1] * net.heap[grid] * across + col * across


@compiled
def _begin(heap, port, at):
    heap[port + LEFT] = heap[at]
    heap[port + NEXT] = 0 if heap[port + BURSTS] > 0 else heap[at + 1]
    heap[port + ASKS_AT] = max(heap[port + ASKS_AT], heap[at + 3])
    done = completion_of_next(heap, port)
    heap[done + FIRST_BURST], heap[done + LAST_BURST], heap[done + MORE] = -1, -1, heap[at] - 1
    heap[done + PARTS] = heap[at] * heap[port + SPAN] * heap[port + BURSTS]


@compiled
def completed(net, port):
    """Has the oldest request been served, or been begun to be, and when is known?"""
    return net.heap[port + COMPLETED] > 0 and (
        net.heap[_completion(net.heap, port, net.heap[port + DONE_HEAD]) + PARTS] <= 0)


@compiled
def _completion(heap, port, place):
    return (port + PORT_WORDS + heap[port + DEPTH] * REQUEST_WORDS
            + place % heap[port + DEPTH] * COMPLETION_WORDS)


@compiled
def completion_first(net, port):
    """When the first burst of the oldest completed request is there."""
    return net.heap[_completion(net.heap, port, net.heap[port + DONE_HEAD]) + FIRST_BURST]


@compiled
def completion_last(net, port):
    """When its last burst is."""
    return net.heap[_completion(net.heap, port, net.heap[port + DONE_HEAD]) + LAST_BURST]


@compiled
def take_completion(net, port):
    """Take the oldest completed request."""
    net.heap[port + DONE_HEAD] = (net.heap[port + DONE_HEAD] + 1) % net.heap[port + DEPTH]
    net.heap[port + COMPLETED] -= 1


@compiled
def _take_channel(heap, channel, earliest, ticks):
    """A channel works for ``ticks`` from ``earliest`` on, or when it is free; when it begins."""
    start = max(heap[channel], earliest)
    heap[channel] = start + ticks
    return start


@compiled
def next_port(heap, memory, turn, c, now):
    """Number of the next port after ``turn`` that waits at channel ``c``, or, where that is -1, has something to
    ask for ``now``; -1 for none."""
    ports, table = heap[memory + PORTS], heap[memory + PORTS_AT]
    for _ in range(ports):
        turn = 0 if turn + 1 >= ports else turn + 1
        port = heap[table + turn]
        if heap[heap[port + QUEUES] + QUEUE_WORDS * c] > 0 if c >= 0 else (
                heap[port + WAITING] > 0 and heap[port + ASKS_AT] <= now):
            return turn
    return -1


@compiled
def completion_of_next(heap, port):
    """Where the completion of the request that is being asked for lies."""
    return _completion(heap, port, heap[port + DONE_HEAD] + heap[port + COMPLETED])


@compiled
def asked(net, memory, port, now):
    """The request that was being asked for has been asked for whole: go on to the next."""
    heap = net.heap
    place = heap[port + WAIT_HEAD]
    nbytes = heap[port + PORT_WORDS + place * REQUEST_WORDS + 2]
    heap[memory + (WRITE_BYTES if heap[port + PORT_WRITES] != 0 else READ_BYTES)] += nbytes
    heap[port + COMPLETED] += 1
    heap[port + WAIT_HEAD] = (place + 1) % heap[port + DEPTH]
    heap[port + WAITING] -= 1
    if heap[port + WAITING] > 0:
        _begin(heap, port, port + PORT_WORDS + heap[port + WAIT_HEAD] * REQUEST_WORDS)
    wake(net, heap[port + PORT_UNIT], now)


@compiled
def served(heap, memory, port, at, first, last, behind):
    """Bursts of the completion ``at`` are served from ``first`` to ``last``. What is read leaves in order, an element a
    cycle, so its last is there ``behind`` cycles later at the earliest; below 0 for bursts in bulk."""
    writes = heap[port + PORT_WRITES] != 0
    if writes:
        heap[memory + LAST_WRITE] = max(heap[memory + LAST_WRITE], last)
    elif heap[memory + FIRST_READ] < 0:
        heap[memory + FIRST_READ] = first
    delay = 1 if writes else heap[memory + LATENCY]
    if heap[at + FIRST_BURST] < 0 if behind < 0 else behind == heap[at + MORE]:
        heap[at + FIRST_BURST] = max(heap[at + FIRST_BURST], first + delay)
    heap[at + LAST_BURST] = max(heap[at + LAST_BURST], last + delay + (0 if writes else max(0, behind)))


@compiled
def serve_bursts(net, u, memory, now):
    """Serve the next port in turn, up to the grain; returns whether there was one."""
    heap = net.heap
    turn = next_port(heap, memory, heap[memory + TURN], -1, now)
    if turn < 0:
        return False
    heap[memory + TURN] = turn
    port = heap[heap[memory + PORTS_AT] + turn]
    channels, a_burst, ticks = heap[memory + CHANNELS], heap[memory + TICKS_A_BURST], heap[memory + TICKS]
    busy = memory + MEMORY_WORDS
    count = min(heap[port + LEFT], heap[memory + GRAIN])
    began, ended = -1, -1
    each, more = count // channels, count % channels
    for i in range(min(count, channels)):
        channel = busy + (heap[port + NEXT] + i) % channels
        work = (each + (1 if i < more else 0)) * a_burst
        start = _take_channel(heap, channel, now * ticks, work)
        began = start if began < 0 else min(began, start)
        ended = max(ended, start + work - a_burst)
    heap[port + LEFT] -= count
    heap[port + NEXT] += count
    at = completion_of_next(heap, port)
    served(heap, memory, port, at, began // ticks, ended // ticks, -1)
    if heap[port + LEFT] == 0:
        asked(net, memory, port, now)
    free = heap[busy]
    for c in range(1, channels):
        free = min(free, heap[busy + c])
    net.free[u] = max(now, free // ticks)
    return True
