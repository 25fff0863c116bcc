"""Model of ``step_hw/hbm``: arbiter and timing of every channel."""

from ..banked import LEVEL, banked_parameters, banked_push, banked_step, banked_words
from ..compiled import compiled
from ..memory import (
    ARRIVES,
    CALIBRATION,
    MISSING,
    PORT_BURSTS,
    PORT_BYTES,
    PORT_WINDOW,
    PORT_WORDS,
    QUEUE_WORDS,
    SLOT_WORDS,
    queue_head,
    queue_level,
    queue_pop,
    shared_memory,
)
from ..network import BUSY, IDLE, MEMORY

KIND = "hbm"

(
    PORTS_N,
    CHANNELS,
    PORTS,
    QUEUES,
    WAITING,
    STATE,
    INTERVAL,
    LATENCY,
    STARTUP,
    BANKED,
    BANK_PARAMETERS,
    BANK_STATE,
    BANK_STRIDE,
    BANK_QUEUE,
    BEGIN,
) = range(15)
# Statistics, readable in ``RunOutcome.st``: useful bytes, cycle + 1 of the first read and of the last write burst,
# bursts.
READ_BYTES, WRITE_BYTES, FIRST_READ, LAST_WRITE, BURSTS, LAST_ARRIVAL = range(6)
# State of a channel: first cycle in which it takes a burst, port served last, burst within its element, start-up
# cycles spent,
# bursts served.
READY, LAST, Q, WARMED, SERVED, CHANNEL_WORDS = 0, 1, 2, 3, 4, 8


def pack(unit, graph, build):
    """``unit.params``: ``memory`` (MemoryConfig), ``read_ports``, ``write_ports`` (numbers, or sequences of one
    entry a port);
    for benches ``start`` (cycle in which loads begin, from which refreshes are counted, 0)."""
    shared = shared_memory(graph, build)
    memory, par = shared.memory, build.par[unit.index]
    overhead = build.calibration.get("hbm.read_overhead", CALIBRATION["hbm.read_overhead"])
    par[[PORTS_N, CHANNELS, PORTS, QUEUES]] = shared.reads + shared.writes, memory.channels, shared.ports, shared.queues
    par[[WAITING, STATE]] = shared.waiting, build.reserve(memory.channels * CHANNEL_WORDS)
    par[[INTERVAL, LATENCY, STARTUP]] = memory.interval, memory.latency + overhead, memory.startup
    if memory.model == "banked":
        values, words = banked_parameters(memory), banked_words(memory)
        par[[INTERVAL, STARTUP, BANKED, BANK_STRIDE, BANK_QUEUE]] = 1, 0, 1, words, memory.queue
        par[BANK_PARAMETERS] = build.reserve(len(values), values)
        par[BANK_STATE] = build.reserve(memory.channels * words)
        par[BEGIN] = unit.params.get("start", 0)


@compiled
def _turn(par, net, c, last):
    """Port whose element the arbiter takes next, -1 for none."""
    n = par[PORTS_N]
    p = last
    for _ in range(n):
        p += 1
        if p >= n:
            p = 0
        if queue_level(net, par[QUEUES] + (p * par[CHANNELS] + c) * QUEUE_WORDS) > 0:
            return p
    return -1


@compiled
def step(u, par, st, ins, outs, net):
    """Every channel takes a burst if it is ready and one waits."""
    now = net.misc[0]
    heap = net.heap
    served = False
    waiting = False
    for c in range(par[CHANNELS]):
        bank = par[BANK_STATE] + c * par[BANK_STRIDE]
        if par[BANKED]:
            room = heap[bank + LEVEL] < par[BANK_QUEUE]
            waiting |= heap[bank + LEVEL] > 0
            arrives = banked_step(heap, par[BANK_PARAMETERS], bank, now, now - par[BEGIN])
            served |= arrives != 0
            st[LAST_ARRIVAL] = max(st[LAST_ARRIVAL], arrives)
            if not room:
                continue
        if heap[par[WAITING] + c] == 0:
            continue
        waiting = True
        state = par[STATE] + c * CHANNEL_WORDS
        if now < heap[state + READY]:
            continue
        p = heap[state + LAST] if heap[state + Q] else _turn(par, net, c, heap[state + LAST])
        if p < 0:
            continue
        if heap[state + WARMED] < par[STARTUP]:
            heap[state + WARMED] += 1
            continue
        served = True
        heap[state + READY] = now + par[INTERVAL]
        heap[state + LAST] = p
        heap[state + SERVED] += 1
        st[BURSTS] += 1
        entry = par[PORTS] + p * PORT_WORDS
        queue = par[QUEUES] + (p * par[CHANNELS] + c) * QUEUE_WORDS
        window = heap[entry + PORT_WINDOW]
        head = queue_head(net, queue)
        slot = window + heap[head + 1] * SLOT_WORDS
        if par[BANKED]:
            banked_push(heap, par[BANK_PARAMETERS], bank, heap[head] + heap[state + Q], int(window < 0), slot)
        elif window >= 0:
            arrives = now + par[LATENCY]
            heap[slot + MISSING] -= 1
            heap[slot + ARRIVES] = max(heap[slot + ARRIVES], arrives)
            st[LAST_ARRIVAL] = max(st[LAST_ARRIVAL], arrives)
        if window >= 0:
            st[READ_BYTES] += heap[entry + PORT_BYTES]
            if st[FIRST_READ] == 0:
                st[FIRST_READ] = now + 1
        else:
            st[WRITE_BYTES] += heap[entry + PORT_BYTES]
            st[LAST_WRITE] = now + 1
        heap[state + Q] += 1
        if heap[state + Q] == heap[entry + PORT_BURSTS]:
            heap[state + Q] = 0
            queue_pop(net, queue, par[WAITING] + c)
    if served:
        net.misc[2] += 1
        return BUSY
    if waiting or now <= st[LAST_ARRIVAL] + 1:
        net.misc[2] += 1  # waiting for memory is not a deadlock
        return MEMORY
    return IDLE
