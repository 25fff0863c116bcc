"""Model of ``step_hw/units/scratchpad.py``, and the record that bufferize and streamify share with it.

All decisions of a cycle see the state at its start. Bufferize and streamify leave what they did in the record; whoever
comes first in the next cycle applies it (`settle`), so the order in which units are stepped does not matter.
"""

import numpy as np

from step_lang.mapping.registers import GENERATION_WIDTH

from ..compiled import compiled
from ..network import BUSY, IDLE, record_level

__all__ = [
    "FRAMES", "PAGE_FRAMES", "PEAK", "READERS", "REFERENCES", "USED", "attach", "frame_tokens", "frame_values",
    "free_page", "free_reference", "is_alone", "is_live", "length_of", "owner_of", "owner_shift", "pad_ports",
    "port_of", "reader_offset", "reader_record", "request_change", "request_claim", "request_close",
    "request_release", "request_take", "settle", "table_entry",
]

KIND = "scratchpad"

# par of the scratchpad: where its record begins on the heap, plus one (0: not yet reserved).
BASE = 0

# st of the scratchpad, for statistics: pages in use, the most there were, and the same in frames.
ST_USED, ST_PEAK, ST_PEAK_FRAMES = 0, 1, 2

# Record: sizes, counters, what was asked for in this cycle, then the arrays.
FRAMES, PAGE_FRAMES, PAGES, REFERENCES, READERS = 0, 1, 2, 3, 4
STAMP, FRESH, HEAD, LEVEL, USED, PEAK, SERVED, TURN, GRANTED = 5, 6, 7, 8, 9, 10, 11, 12, 13
WALKING, WALK_REF, WALK_PAGE, TAKEN_COUNT, ROUTERS, NUMBER_BITS = 14, 15, 16, 17, 18, 19
ASK_CLAIM, ASK_TAKE, ASK_CLOSE, ASK_LENGTH, ASK_USES = 20, 21, 22, 23, 24
ARRAYS = 25
TAKEN, DEAD, LENGTH, USES, COMPLETE, GENERATION = 0, 1, 2, 3, 4, 5   # of each buffer number
PER_REFERENCE = 6
READER_SIZE = 64                       # one record a reader, laid out by sim/units/streamify.py
READER_RELEASES = 63                   # in it: number of the buffer whose use ends in this cycle, plus one
ROUTER_SIZE = 2                        # one record a router: number plus one, its uses from now on
GENERATIONS = 1 << GENERATION_WIDTH


def attach(graph, index, build):
    """Heap offset of the record of scratchpad ``index``; reserves it at first use."""
    if build.par[index, BASE] == 0:
        params = graph.units[index].params
        frames, page_frames, references = params["frames"], params["page_frames"], params["references"]
        readers, routers = params.get("readers", 1), params.get("routers", 0)
        pages = frames // page_frames
        size = ARRAYS + PER_REFERENCE * references + READER_SIZE * readers + ROUTER_SIZE * routers
        size += pages + references * pages + 2 * frames
        head = np.zeros(ARRAYS, dtype=np.int64)
        head[[FRAMES, PAGE_FRAMES, PAGES, REFERENCES, READERS, ROUTERS]] = (
            frames, page_frames, pages, references, readers, routers)
        head[SERVED], head[NUMBER_BITS] = readers - 1, max(1, (references - 1).bit_length())
        offset = build.reserve(size)
        build.preset.append((offset, head))
        build.par[index, BASE] = offset + 1
    return int(build.par[index, BASE]) - 1


def owner_shift(graph, index):
    """Bits of a reference below those that say which of several scratchpads it is of."""
    return max(1, (graph.units[index].params["references"] - 1).bit_length()) + GENERATION_WIDTH


def pad_ports(unit, graph, build):
    """For a reader or router: heap offset of a list of its scratchpads' records and its port number at each."""
    ports = [value for index, port in unit.params["ports"] for value in (attach(graph, index, build), port)]
    return build.reserve(len(ports), ports)


def reader_offset(graph, index, k, build):
    """Heap offset of reader k's record at scratchpad ``index``."""
    return attach(graph, index, build) + ARRAYS + PER_REFERENCE * graph.units[index].params["references"] + (
        READER_SIZE * k)


def pack(unit, graph, build):
    """``unit.params``: frames, page_frames, references, readers (default 1), routers (default 0)."""
    attach(graph, unit.index, build)


@compiled
def _reference(heap, b, r):
    return b + ARRAYS + PER_REFERENCE * r


@compiled
def _number(heap, b, reference):
    """The buffer's number in a reference."""
    return reference & ((1 << heap[b + NUMBER_BITS]) - 1)


@compiled
def owner_of(heap, b, reference):
    """Which of several scratchpads, of which ``b`` is one, a reference is of."""
    return reference >> (heap[b + NUMBER_BITS] + GENERATION_WIDTH)


@compiled
def port_of(heap, ports, pads, reference):
    """Heap offset of the pair in the list ``ports`` (`pad_ports`, of ``pads`` scratchpads) that ``reference`` is of."""
    return ports + 2 * owner_of(heap, heap[ports], reference) if pads > 1 else ports


@compiled
def is_live(heap, b, reference):
    """The buffer is complete and not freed."""
    number = _number(heap, b, reference)
    if number >= heap[b + REFERENCES]:
        return False
    record = _reference(heap, b, number)
    return heap[record + COMPLETE] == 1 and heap[record + GENERATION] == (
        reference >> heap[b + NUMBER_BITS]) % GENERATIONS


@compiled
def reader_record(heap, b, k):
    """Heap offset of reader k's record."""
    return b + ARRAYS + PER_REFERENCE * heap[b + REFERENCES] + READER_SIZE * k


@compiled
def _router_record(heap, b, k):
    return reader_record(heap, b, heap[b + READERS]) + ROUTER_SIZE * k


@compiled
def _queue(heap, b):
    return _router_record(heap, b, heap[b + ROUTERS])


@compiled
def table_entry(heap, b, reference, page):
    """Heap offset of the page table's entry for a buffer's page ``page``."""
    return _queue(heap, b) + heap[b + PAGES] * (1 + _number(heap, b, reference)) + page


@compiled
def frame_tokens(heap, b):
    """Heap offset of the frames' tokens."""
    return _queue(heap, b) + heap[b + PAGES] * (1 + heap[b + REFERENCES])


@compiled
def frame_values(heap, b):
    """Heap offset of the frames' control values."""
    return frame_tokens(heap, b) + heap[b + FRAMES]


@compiled
def free_reference(heap, b):
    """Reference of the lowest free number, -1 if none is."""
    for r in range(heap[b + REFERENCES]):
        record = _reference(heap, b, r)
        if heap[record + TAKEN] == 0:
            return r | heap[record + GENERATION] << heap[b + NUMBER_BITS]
    return -1


@compiled
def free_page(heap, b):
    """The page that a take would get, -1 if none is free."""
    if heap[b + LEVEL] > 0:
        return heap[_queue(heap, b) + heap[b + HEAD]]
    if heap[b + FRESH] < heap[b + PAGES]:
        return heap[b + FRESH]
    return -1


@compiled
def is_alone(heap, b):
    """Exactly one reference is in use."""
    return heap[b + TAKEN_COUNT] == 1


@compiled
def length_of(heap, b, reference):
    """Elements of the buffer."""
    return heap[_reference(heap, b, _number(heap, b, reference)) + LENGTH]


@compiled
def request_claim(heap, b, reference):
    """The reference is taken at the end of this cycle."""
    heap[b + ASK_CLAIM] = _number(heap, b, reference) + 1


@compiled
def request_take(heap, b, reference, number, page):
    """Page ``page`` is taken at the end of this cycle, as the buffer's page ``number``."""
    heap[b + ASK_TAKE] = 1
    heap[table_entry(heap, b, reference, number)] = page


@compiled
def request_close(heap, b, reference, length, uses):
    """The buffer is complete at the end of this cycle."""
    heap[b + ASK_CLOSE] = _number(heap, b, reference) + 1
    heap[b + ASK_LENGTH] = length
    heap[b + ASK_USES] = uses


@compiled
def request_release(heap, b, k, reference):
    """Reader k ends its use of the buffer at the end of this cycle."""
    heap[reader_record(heap, b, k) + READER_RELEASES] = _number(heap, b, reference) + 1


@compiled
def request_change(heap, b, k, reference, uses):
    """The use that router k holds becomes ``uses`` uses at the end of this cycle."""
    record = _router_record(heap, b, k)
    heap[record] = _number(heap, b, reference) + 1
    heap[record + 1] = uses


@compiled
def settle(net, b):
    """Once a cycle: apply what happened in the cycle before."""
    heap = net.heap
    if heap[b + STAMP] == net.misc[0] + 1:
        return
    heap[b + STAMP] = net.misc[0] + 1
    heap[b + TURN] = -2  # readers have not been arbitrated yet
    pages = heap[b + PAGES]
    queue = _queue(heap, b)

    # Decisions of the free side, on the state before anything changes.
    reuse = heap[b + LEVEL] > 0
    now = -1
    if heap[b + WALKING] == 1:
        now = heap[b + WALK_REF]
    else:
        for r in range(heap[b + REFERENCES]):
            if heap[_reference(heap, b, r) + DEAD] == 1:
                now = r
                break
    given = 0
    if now >= 0:
        record = _reference(heap, b, now)
        number = heap[b + WALK_PAGE]
        if heap[record + LENGTH] > 0:
            tail = heap[b + HEAD] + heap[b + LEVEL]
            if tail >= pages:
                tail -= pages
            heap[queue + tail] = heap[table_entry(heap, b, now, number)]
            given = 1
        if (number + 1) * heap[b + PAGE_FRAMES] >= heap[record + LENGTH]:
            heap[b + WALKING] = 0
            heap[b + WALK_PAGE] = 0
            heap[record + TAKEN] = 0
            heap[record + DEAD] = 0
            heap[b + TAKEN_COUNT] -= 1
        else:
            heap[b + WALKING] = 1
            heap[b + WALK_REF] = now
            heap[b + WALK_PAGE] = number + 1
        net.misc[2] += 1  # giving pages back is progress

    if heap[b + ASK_TAKE] == 1:
        heap[b + ASK_TAKE] = 0
        heap[b + USED] += 1
        if reuse:
            heap[b + HEAD] = (heap[b + HEAD] + 1) % pages
            heap[b + LEVEL] -= 1
        else:
            heap[b + FRESH] += 1
    heap[b + LEVEL] += given
    heap[b + USED] -= given
    if heap[b + USED] > heap[b + PEAK]:
        heap[b + PEAK] = heap[b + USED]

    if heap[b + ASK_CLAIM] > 0:
        heap[_reference(heap, b, heap[b + ASK_CLAIM] - 1) + TAKEN] = 1
        heap[b + TAKEN_COUNT] += 1
        heap[b + ASK_CLAIM] = 0
    _settle_uses(heap, b)


@compiled
def _settle_uses(heap, b):
    """Buffers completed, uses ended and made; a buffer whose last use is over is dead."""
    if heap[b + ASK_CLOSE] > 0:
        record = _reference(heap, b, heap[b + ASK_CLOSE] - 1)
        heap[record + LENGTH] = heap[b + ASK_LENGTH]
        heap[record + USES] = heap[b + ASK_USES]
        heap[record + COMPLETE] = 1
        if heap[record + USES] == 0:
            _die(heap, record)
        heap[b + ASK_CLOSE] = 0
    # All that routers make of a buffer's uses, before any end.
    for k in range(heap[b + ROUTERS]):
        router = _router_record(heap, b, k)
        if heap[router] > 0:
            heap[_reference(heap, b, heap[router] - 1) + USES] += heap[router + 1]
    for k in range(heap[b + READERS] + heap[b + ROUTERS]):
        ask = reader_record(heap, b, k) + READER_RELEASES
        if k >= heap[b + READERS]:
            ask = _router_record(heap, b, k - heap[b + READERS])
        if heap[ask] > 0:
            record = _reference(heap, b, heap[ask] - 1)
            heap[record + USES] -= 1
            if heap[record + USES] == 0:
                _die(heap, record)
            heap[ask] = 0


@compiled
def _die(heap, record):
    heap[record + DEAD] = 1
    heap[record + COMPLETE] = 0
    heap[record + GENERATION] = (heap[record + GENERATION] + 1) % GENERATIONS


@compiled
def step(u, par, st, ins, outs, net):
    """Pages in use and their peak; the work itself is done by `settle`."""
    b = par[BASE] - 1
    heap = net.heap
    settle(net, b)
    if st[ST_USED] != heap[b + USED]:
        record_level(net, u, heap[b + USED])
    st[ST_USED] = heap[b + USED]
    st[ST_PEAK] = heap[b + PEAK]
    st[ST_PEAK_FRAMES] = heap[b + PEAK] * heap[b + PAGE_FRAMES]
    return BUSY if heap[b + USED] > 0 else IDLE
