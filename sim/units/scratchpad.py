"""Model of ``step_hw/units/scratchpad.py``, and the record that bufferize and streamify share with it.

All decisions of a cycle see the state at its start. Bufferize and streamify leave what they did in the record; whoever
comes first in the next cycle applies it (`settle`), so the order in which units are stepped does not matter.
"""

from ..compiled import compiled
from ..network import BUSY, IDLE

__all__ = [
    "FRAMES", "PAGE_FRAMES", "PEAK", "READERS", "REFERENCES", "USED", "attach", "frame_tokens", "frame_values",
    "free_page", "free_reference", "is_alone", "length_of", "reader_record", "request_claim", "request_close",
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
WALKING, WALK_REF, WALK_PAGE, LIVE, ALL_LIVE = 14, 15, 16, 17, 18
ASK_CLAIM, ASK_TAKE, ASK_CLOSE, ASK_LENGTH, ASK_USES = 20, 21, 22, 23, 24
ASK_RELEASE = 25                       # + reader: reference + 1
MAX_READERS = 16
ARRAYS = ASK_RELEASE + MAX_READERS     # + per reference: live, dead, length, uses
PER_REFERENCE = 4
READER_SIZE = 64                       # one record a reader, laid out by sim/units/streamify.py
READER_FIELDS = ("scratchpad", "reader")


def attach(graph, index, build):
    """Heap offset of the record of scratchpad ``index``; reserves it at first use."""
    if build.par[index, BASE] == 0:
        params = graph.units[index].params
        frames, page_frames, references = params["frames"], params["page_frames"], params["references"]
        readers = params.get("readers", 1)
        if readers > MAX_READERS:
            raise ValueError(f"scratchpad {graph.units[index].name}: {readers} readers, the model has {MAX_READERS}")
        pages = frames // page_frames
        size = ARRAYS + PER_REFERENCE * references + READER_SIZE * readers + pages + references * pages + 2 * frames
        head = [frames, page_frames, pages, references, readers, 0, 0, 0, 0, 0, 0, readers - 1]
        offset = build.reserve(size)
        build.preset.append((offset, _int64(head)))
        build.par[index, BASE] = offset + 1
    return int(build.par[index, BASE]) - 1


def _int64(values):
    import numpy as np

    return np.asarray(values, dtype=np.int64)


def pack(unit, graph, build):
    """``unit.params``: frames, page_frames, references, readers."""
    attach(graph, unit.index, build)


@compiled
def _reference(heap, b, r):
    return b + ARRAYS + PER_REFERENCE * r


@compiled
def reader_record(heap, b, k):
    """Heap offset of reader k's record."""
    return b + ARRAYS + PER_REFERENCE * heap[b + REFERENCES] + READER_SIZE * k


@compiled
def _queue(heap, b):
    return reader_record(heap, b, heap[b + READERS])


@compiled
def table_entry(heap, b, r, number):
    """Heap offset of the page table's entry for page ``number`` of reference ``r``."""
    return _queue(heap, b) + heap[b + PAGES] * (1 + r) + number


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
    """Lowest free reference, -1 if none is."""
    for r in range(heap[b + REFERENCES]):
        if heap[_reference(heap, b, r)] == 0:
            return r
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
    return heap[b + LIVE] == 1


@compiled
def length_of(heap, b, r):
    """Elements of buffer r."""
    return heap[_reference(heap, b, r) + 2]


@compiled
def request_claim(heap, b, r):
    """Reference r is taken at the end of this cycle."""
    heap[b + ASK_CLAIM] = r + 1


@compiled
def request_take(heap, b, r, number, page):
    """Page ``page`` is taken at the end of this cycle, as page ``number`` of reference r."""
    heap[b + ASK_TAKE] = 1
    heap[table_entry(heap, b, r, number)] = page


@compiled
def request_close(heap, b, r, length, uses):
    """Buffer r is complete at the end of this cycle."""
    heap[b + ASK_CLOSE] = r + 1
    heap[b + ASK_LENGTH] = length
    heap[b + ASK_USES] = uses


@compiled
def request_release(heap, b, k, r):
    """Reader k ends its use of buffer r at the end of this cycle."""
    heap[b + ASK_RELEASE + k] = r + 1


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
            if heap[_reference(heap, b, r) + 1] == 1:
                now = r
                break
    given = 0
    if now >= 0:
        record = _reference(heap, b, now)
        number = heap[b + WALK_PAGE]
        if heap[record + 2] > 0:
            tail = heap[b + HEAD] + heap[b + LEVEL]
            if tail >= pages:
                tail -= pages
            heap[queue + tail] = heap[table_entry(heap, b, now, number)]
            given = 1
        if (number + 1) * heap[b + PAGE_FRAMES] >= heap[record + 2]:
            heap[b + WALKING] = 0
            heap[b + WALK_PAGE] = 0
            heap[record] = 0
            heap[record + 1] = 0
            heap[b + LIVE] -= 1
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
        heap[_reference(heap, b, heap[b + ASK_CLAIM] - 1)] = 1
        heap[b + LIVE] += 1
        heap[b + ASK_CLAIM] = 0
    if heap[b + ASK_CLOSE] > 0:
        record = _reference(heap, b, heap[b + ASK_CLOSE] - 1)
        heap[record + 2] = heap[b + ASK_LENGTH]
        heap[record + 3] = heap[b + ASK_USES]
        heap[b + ASK_CLOSE] = 0
    for k in range(heap[b + READERS]):
        r = heap[b + ASK_RELEASE + k] - 1
        if r >= 0:
            record = _reference(heap, b, r)
            heap[record + 3] -= 1
            if heap[record + 3] <= 0:
                heap[record + 1] = 1
            heap[b + ASK_RELEASE + k] = 0


@compiled
def step(u, par, st, ins, outs, net):
    """Pages in use and their peak; the work itself is done by `settle`."""
    b = par[BASE] - 1
    heap = net.heap
    settle(net, b)
    st[ST_USED] = heap[b + USED]
    st[ST_PEAK] = heap[b + PEAK]
    st[ST_PEAK_FRAMES] = heap[b + PEAK] * heap[b + PAGE_FRAMES]
    return BUSY if heap[b + USED] > 0 else IDLE
