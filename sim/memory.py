"""State that load, store and memory units share on the heap, and the steps that several of them take.

Twin of ``step_hw.hbm``. Units may step in any order within a cycle, so what one unit sees of another is as it stood
at the
start of the cycle: a queue remembers in which cycle it was last pushed and popped, a window in which cycle a burst
arrives.
"""

from dataclasses import dataclass

import numpy as np

from step_lang.errors import ConfigError
from step_lang.memory_config import MemoryConfig

from .compiled import compiled

__all__ = [
    "CALIBRATION",
    "QUEUE_DEPTH",
    "SharedMemory",
    "affine_index",
    "affine_last",
    "affine_step",
    "affine_wraps",
    "pack_affine",
    "pack_elements",
    "queue_head",
    "queue_level",
    "queue_pop",
    "queue_push",
    "queue_room",
    "shared_memory",
]

QUEUE_DEPTH = 2

CALIBRATION = {"hbm.read_overhead": 0, "hbm.write_overhead": 0}
"""Constants that calibration may fit, and their values by construction of the RTL: cycles of the path added to each
read
burst (beyond the configured latency) and to the end of each store."""

# A queue of a port at a channel: totals, cycle + 1 of the last push and pop, then (line, slot) of each place.
PUSHED, POPPED, PUSH_STAMP, POP_STAMP, PLACES = 0, 1, 2, 3, 4
QUEUE_WORDS = PLACES + 2 * QUEUE_DEPTH
# A port: bursts an element has on a channel, useful bytes of a burst, offset of its window (-1 for a write port).
PORT_BURSTS, PORT_BYTES, PORT_WINDOW, PORT_WORDS = 0, 1, 2, 4
# A window slot: bursts still to come, cycle in which the last one arrives, token, control value.
MISSING, ARRIVES, TOKEN, VALUE, SLOT_WORDS = 0, 1, 2, 3, 4

# Where a load's or store's parameters and state hold its view.
DIMS, COUNT0, STRIDE0, VIEW_END = 0, 1, 7, 13
ROUND0, START0, POSITION_END = 0, 6, 12
# And its elements.
BASE, LIMIT, BURSTS, SPAN, GROUPS, PER_BURST, CHANNELS, QUEUES, WAITING, WINDOW, SLOTS, ELEMENTS_END = range(
    VIEW_END, VIEW_END + 12
)


@dataclass(frozen=True)
class SharedMemory:
    """Heap offsets of the memory system of a graph; made by the first unit that asks (``shared_memory``).

    memory : its configuration; reads, writes : numbers of ports (a port's index counts reads first)
    ports, queues, waiting : offsets of the port table, of the queues [port, channel], and of the count of elements
    waiting at each channel
    """

    memory: MemoryConfig
    reads: int
    writes: int
    ports: int
    queues: int
    waiting: int

    def queue(self, port: int) -> int:
        """Offset of the port's queue at channel 0."""
        return self.queues + port * self.memory.channels * QUEUE_WORDS


def shared_memory(graph, build) -> SharedMemory:
    """The memory system of ``graph``, whose unit of kind "hbm" has the params ``memory``, ``read_ports``,
    ``write_ports``."""
    if "memory" not in build.shared:
        units = [unit for unit in graph.units if unit.kind == "hbm"]
        if len(units) != 1:
            raise ConfigError(
                f"units that load or store need one memory system, the graph has {len(units)} units of kind 'hbm'"
            )
        params = units[0].params
        memory, reads, writes = params["memory"], _number(params["read_ports"]), _number(params["write_ports"])
        n = reads + writes
        table = np.full(n * PORT_WORDS, -1)
        build.shared["memory"] = SharedMemory(
            memory,
            reads,
            writes,
            build.reserve(n * PORT_WORDS, table),
            build.reserve(n * memory.channels * QUEUE_WORDS),
            build.reserve(memory.channels),
        )
    return build.shared["memory"]


def _number(ports) -> int:
    return ports if isinstance(ports, int) else len(ports)


def pack_affine(par: np.ndarray, config) -> None:
    """Registers of the view into ``par``; loops left out of ``config`` count 1."""
    par[DIMS] = config["dims"]
    for k in range(6):
        par[COUNT0 + k] = config.get(f"count{k}", 1)
        stride = config.get(f"stride{k}", 0)
        par[STRIDE0 + k] = stride - (1 << 32) if stride >= 1 << 31 else stride  # registers hold two's complement


def pack_elements(unit, graph, build, window: int | None = None) -> SharedMemory:
    """Element layout and port of a load (with its ``window``) or store unit into its parameters and the port table."""
    shared = shared_memory(graph, build)
    memory, par = shared.memory, build.par[unit.index]
    layout = memory.layout(unit.params["element_bytes"])
    par[[BURSTS, SPAN, GROUPS, PER_BURST]] = layout.bursts, layout.span, layout.groups, layout.per_burst
    par[BASE] = unit.config["base"] // memory.alignment
    # As in RTL, where the base lies within a line every index is outside the tensor.
    par[LIMIT] = 0 if unit.config["base"] % memory.alignment else unit.config["limit"]
    port = unit.params["port"] + (0 if window else shared.reads)
    par[[CHANNELS, QUEUES, WAITING]] = memory.channels, shared.queue(port), shared.waiting
    entry = [layout.bursts, layout.burst_bytes, -1]
    if window:
        slots = np.zeros((window, SLOT_WORDS), dtype=np.int64)
        slots[:, MISSING] = layout.bursts * layout.span
        entry[PORT_WINDOW] = build.reserve(slots.size, slots.ravel())
        par[[WINDOW, SLOTS]] = entry[PORT_WINDOW], window
    build.preset.append((shared.ports + port * PORT_WORDS, np.array(entry, dtype=np.int64)))
    return shared


@compiled
def affine_index(st):
    """Index of the present position."""
    return st[START0]


@compiled
def affine_wraps(par, st):
    """How many innermost loops end at the present position."""
    k = 0
    while k < par[DIMS] and st[ROUND0 + k] + 1 >= par[COUNT0 + k]:
        k += 1
    return k


@compiled
def affine_last(par, st):
    """Is it the last position? (So it is in a view with an outer loop of count 0.)"""
    for k in range(1, par[DIMS]):
        if par[COUNT0 + k] == 0:
            return True
    return affine_wraps(par, st) == par[DIMS]


@compiled
def affine_step(par, st):
    """Go to the next position."""
    if affine_last(par, st):
        for k in range(POSITION_END):
            st[k] = 0
        return
    k = affine_wraps(par, st)
    st[ROUND0 + k] += 1
    start = st[START0 + k] + par[STRIDE0 + k]
    st[START0 + k] = start
    for i in range(k):
        st[ROUND0 + i] = 0
        st[START0 + i] = start


@compiled
def queue_room(net, queue):
    """May the port push an element in this cycle?"""
    heap = net.heap
    level = heap[queue + PUSHED] - heap[queue + POPPED]
    if heap[queue + POP_STAMP] == net.misc[0] + 1:
        level += 1
    return level < QUEUE_DEPTH


@compiled
def queue_push(net, queue, waiting, line, slot):
    """Push an element; ``waiting`` is the offset of its channel's count."""
    heap = net.heap
    place = queue + PLACES + 2 * (heap[queue + PUSHED] % QUEUE_DEPTH)
    heap[place] = line
    heap[place + 1] = slot
    heap[queue + PUSHED] += 1
    heap[queue + PUSH_STAMP] = net.misc[0] + 1
    heap[waiting] += 1
    net.misc[2] += 1


@compiled
def queue_level(net, queue):
    """Elements that the channel sees."""
    heap = net.heap
    level = heap[queue + PUSHED] - heap[queue + POPPED]
    if heap[queue + PUSH_STAMP] == net.misc[0] + 1:
        level -= 1
    return level


@compiled
def queue_head(net, queue):
    """Offset of (line, slot) of the first element."""
    return queue + PLACES + 2 * (net.heap[queue + POPPED] % QUEUE_DEPTH)


@compiled
def queue_pop(net, queue, waiting):
    """Take the first element."""
    net.heap[queue + POPPED] += 1
    net.heap[queue + POP_STAMP] = net.misc[0] + 1
    net.heap[waiting] -= 1
