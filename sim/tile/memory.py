"""Off-chip memory at tile fidelity: linear bursts in bulk, channels shared by all operators.

Every load, store and input stream is a port. A port's requests (a tile's bursts, on consecutive addresses, which are
interleaved over the channels) are served in order; the memory serves ports in turn, ``grain`` bursts at a time, as soon
as a channel is free. A channel takes a burst every ``interval`` cycles.

Of a `MemoryConfig` with banks the interval is that of open rows, stretched by the share of time that refreshes take
(linear streams open the next row in another bank while they read the present one), and the latency is that of a row
which must be opened.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from step_lang.memory_config import MemoryConfig

from ..compiled import compiled
from .network import wake

__all__ = ["FIRST_READ", "LAST_WRITE", "MEMORY_WORDS", "PORT_WORDS", "READ_BYTES", "WRITE_BYTES", "SharedMemory",
           "completed", "completion_first", "completion_last", "request", "requests_room", "take_completion"]

(PORT_UNIT, PORT_WRITES, DEPTH, WAIT_HEAD, WAITING, LEFT, NEXT, DONE_HEAD, COMPLETED, FIRST_DONE, LAST_DONE,
 PORT_WORDS) = range(12)
"""A port: its unit, whether it writes, requests it may have; those that wait; of the first of them the bursts left, the
next burst's number, and when its first and last are served; those completed. Behind it ``DEPTH`` requests of
(bursts, first burst, bytes) and as many completions of (first, last)."""
REQUEST_WORDS, COMPLETION_WORDS = 3, 2

(UNIT, PORTS, PORTS_AT, TURN, CHANNELS, GRAIN, LATENCY, TICKS, TICKS_A_BURST, READ_BYTES, WRITE_BYTES, FIRST_READ,
 LAST_WRITE, BUSY, MEMORY_WORDS) = range(15)
"""The memory: its unit, ports and where they are listed, the port served last, channels, bursts served in one go,
cycles from a burst to its data, ticks to a cycle and to a burst (so that intervals need not be whole cycles), counters,
and the ticks at which each channel is free."""

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


def make_memory(memory: MemoryConfig, unit: int, ports: int, grain: int, build: Any) -> SharedMemory:
    """Reserve the memory's words; ``grain`` in bursts."""
    interval, latency = memory_timing(memory)
    table = build.reserve(ports)
    at = build.reserve(MEMORY_WORDS + memory.channels)
    words = np.zeros(MEMORY_WORDS + memory.channels, dtype=np.int64)
    words[[UNIT, PORTS_AT, CHANNELS, GRAIN, LATENCY, TICKS, TICKS_A_BURST]] = (
        unit, table, memory.channels, grain, latency, _TICKS, math.ceil(interval * _TICKS - 1e-9))
    words[[FIRST_READ, LAST_WRITE]] = -1
    words[MEMORY_WORDS:] = memory.startup * _TICKS
    build.preset(at, words)
    return SharedMemory(at, memory)


def make_port(shared: SharedMemory, unit: int, writes: bool, depth: int, build: Any) -> int:
    """Reserve a port of the memory; its offset."""
    at = build.reserve(PORT_WORDS + depth * (REQUEST_WORDS + COMPLETION_WORDS), [unit, writes, depth])
    number = build.ports
    build.ports += 1
    build.preset(build.word(shared.at + PORTS_AT) + number, [at])
    build.preset(shared.at + PORTS, [build.ports])
    return at


@compiled
def requests_room(net, port):
    """May the port ask for more?"""
    heap = net.heap
    return heap[port + WAITING] + heap[port + COMPLETED] < heap[port + DEPTH]


@compiled
def request(net, memory, port, bursts, first, nbytes, now):
    """Ask for ``bursts`` from burst number ``first`` of the memory on, of which ``nbytes`` are useful."""
    heap = net.heap
    place = (heap[port + WAIT_HEAD] + heap[port + WAITING]) % heap[port + DEPTH]
    at = port + PORT_WORDS + place * REQUEST_WORDS
    heap[at] = bursts
    heap[at + 1] = first
    heap[at + 2] = nbytes
    if heap[port + WAITING] == 0:
        _begin(heap, port, at)
    heap[port + WAITING] += 1
    wake(net, heap[memory + UNIT], now)


@compiled
def _begin(heap, port, at):
    heap[port + LEFT] = heap[at]
    heap[port + NEXT] = heap[at + 1]
    heap[port + FIRST_DONE] = -1
    heap[port + LAST_DONE] = -1


@compiled
def completed(net, port):
    """Requests completed and not yet taken."""
    return net.heap[port + COMPLETED]


@compiled
def _completion(heap, port, place):
    return (port + PORT_WORDS + heap[port + DEPTH] * REQUEST_WORDS
            + place % heap[port + DEPTH] * COMPLETION_WORDS)


@compiled
def completion_first(net, port):
    """When the first burst of the oldest completed request is there."""
    return net.heap[_completion(net.heap, port, net.heap[port + DONE_HEAD])]


@compiled
def completion_last(net, port):
    """When its last burst is."""
    return net.heap[_completion(net.heap, port, net.heap[port + DONE_HEAD]) + 1]


@compiled
def take_completion(net, port):
    """Take the oldest completed request."""
    net.heap[port + DONE_HEAD] = (net.heap[port + DONE_HEAD] + 1) % net.heap[port + DEPTH]
    net.heap[port + COMPLETED] -= 1


@compiled
def serve(net, u, memory, now):
    """Serve the next port in turn, up to the grain; returns whether there was one."""
    heap = net.heap
    ports, table = heap[memory + PORTS], heap[memory + PORTS_AT]
    port = -1
    turn = heap[memory + TURN]
    for _ in range(ports):
        turn = 0 if turn + 1 >= ports else turn + 1
        if heap[heap[table + turn] + WAITING] > 0:
            port = heap[table + turn]
            break
    if port < 0:
        return False
    heap[memory + TURN] = turn
    channels, a_burst, ticks = heap[memory + CHANNELS], heap[memory + TICKS_A_BURST], heap[memory + TICKS]
    busy = memory + MEMORY_WORDS
    count = min(heap[port + LEFT], heap[memory + GRAIN])
    first_burst = heap[port + NEXT]
    began, ended = -1, -1
    each, more = count // channels, count % channels
    for i in range(min(count, channels)):
        c = busy + (first_burst + i) % channels
        n = each + (1 if i < more else 0)
        start = max(heap[c], now * ticks)
        heap[c] = start + n * a_burst
        if began < 0 or start < began:
            began = start
        ended = max(ended, heap[c] - a_burst)
    heap[memory + BUSY] += count * a_burst
    first, last = began // ticks, ended // ticks
    writes = heap[port + PORT_WRITES] != 0
    if writes:
        heap[memory + LAST_WRITE] = max(heap[memory + LAST_WRITE], last)
    elif heap[memory + FIRST_READ] < 0:
        heap[memory + FIRST_READ] = first
    if heap[port + FIRST_DONE] < 0:
        heap[port + FIRST_DONE] = first
    heap[port + LAST_DONE] = max(heap[port + LAST_DONE], last)
    heap[port + LEFT] -= count
    heap[port + NEXT] += count
    if heap[port + LEFT] == 0:
        place = heap[port + WAIT_HEAD]
        heap[memory + (WRITE_BYTES if writes else READ_BYTES)] += heap[port + PORT_WORDS + place * REQUEST_WORDS + 2]
        at = _completion(heap, port, heap[port + DONE_HEAD] + heap[port + COMPLETED])
        delay = 1 if writes else heap[memory + LATENCY]
        heap[at] = heap[port + FIRST_DONE] + delay
        heap[at + 1] = heap[port + LAST_DONE] + delay
        heap[port + COMPLETED] += 1
        heap[port + WAIT_HEAD] = (place + 1) % heap[port + DEPTH]
        heap[port + WAITING] -= 1
        if heap[port + WAITING] > 0:
            _begin(heap, port, port + PORT_WORDS + heap[port + WAIT_HEAD] * REQUEST_WORDS)
        wake(net, heap[port + PORT_UNIT], now)
    free = heap[busy]
    for c in range(1, channels):
        free = min(free, heap[busy + c])
    net.free[u] = max(now, free // ticks)
    return True
