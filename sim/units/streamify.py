"""Model of ``step_hw/units/streamify.py``.

Registers live in the reader's record of its scratchpad (`sim.units.scratchpad`), since with several readers each must
be seen by the arbitration of the read port, whichever unit is stepped first. At several scratchpads, whose references
meet, they live at the first; the others' records say where, and what is wanted there.
"""

import numpy as np

from step_lang.errorcodes import ErrorCode

from ..compiled import compiled
from ..network import (
    BLOCKED,
    BUSY,
    EMPTY,
    STARVED,
    can_pop,
    can_push,
    fail,
    is_bare,
    is_done,
    peek,
    peek_value,
    pop,
    push,
    stop_of,
    with_stop,
)
from ..values import passes
from .scratchpad import (
    PAGE_FRAMES,
    READERS,
    SERVED,
    TURN,
    frame_tokens,
    frame_values,
    is_live,
    length_of,
    owner_of,
    pad_ports,
    reader_offset,
    reader_record,
    request_release,
    settle,
    table_entry,
)

KIND = "streamify"
STEERED_BY = (0,)
value_inputs = passes

LOOPS = 4
COUNT_MASK = (1 << 24) - 1

PADS, PORTS = 0, 1  # par: scratchpads, and their list
# Reader record: links, configuration, registers.
BUFFERS, REFERENCE, OUT, N, C, REPEAT, AFFINE = 0, 1, 2, 3, 4, 5, 6
COUNTS, STRIDES = 8, 12
PASSES, FULL, STAGE_TOKEN, STAGE_VALUE, ERROR = 16, 17, 18, 19, 20
AT, START = 24, 28
# Which of its reader's scratchpads this record is at, how many there are, and where its registers are.
OWNER, OWNERS, REGISTERS = 21, 22, 23
# Decision of this cycle, made by `_decide`; what is wanted and read is of this scratchpad.
WANTS, READS, LAST, STOP, ENDS_USE, INDEX, DONE_, STEPPING = 32, 33, 34, 35, 36, 37, 38, 39

MISALIGNED, STOP_RANGE, ADDRESS_RANGE = ErrorCode.MISALIGNED, ErrorCode.STOP_RANGE, ErrorCode.ADDRESS_RANGE
FREED = ErrorCode.FREED


def pack(unit, graph, build):
    """``unit.params``: ports, (scratchpad, reader's number) of each whose references come; has_ref. ``unit.config``:
    see the hardware unit; unused registers may be absent."""
    par, config, ports = build.par[unit.index], unit.config, unit.params["ports"]
    par[PADS], par[PORTS] = len(ports), pad_ports(unit, graph, build)
    values = [0] * COUNTS
    values[BUFFERS] = unit.inputs[0]
    values[REFERENCE] = unit.inputs[1] if len(unit.inputs) > 1 else -1
    values[OUT] = unit.outputs[0]
    values[N], values[C] = config["n"], config.get("c", 1)
    values[REPEAT], values[AFFINE] = config.get("repeat", 1), config.get("affine", 0)
    values += [config.get(f"count{k}", 1) for k in range(LOOPS)]
    values += [config.get(f"stride{k}", 0) & COUNT_MASK for k in range(LOOPS)]
    registers = reader_offset(graph, *ports[0], build)
    build.preset.append((registers, np.asarray(values, dtype=np.int64)))
    for owner, port in enumerate(ports):
        build.preset.append((reader_offset(graph, *port, build) + OWNER,
                             np.asarray([owner, len(ports), registers], dtype=np.int64)))


@compiled
def _stride(heap, r, j):
    """Elements from one iteration of loop j to the next; in order, the innermost is the only loop."""
    return heap[r + STRIDES + j] if heap[r + AFFINE] == 1 else 1


@compiled
def _ends(heap, r, j, length):
    """Loop j is in its last iteration. A loop of count 0 is open; in order, the innermost is."""
    count = heap[r + COUNTS + j] if heap[r + AFFINE] == 1 else (0 if j == 0 else 1)
    if count == 0:
        return heap[r + START + j] + _stride(heap, r, j) >= length
    return heap[r + AT + j] + 1 == count


@compiled
def _owner(net, b, buffers):
    """Which of its reader's scratchpads, of which ``b`` is one, the head of link ``buffers`` concerns; what is no
    reference concerns the first."""
    head = peek(net, buffers)
    if is_done(head) or is_bare(head):
        return 0
    return owner_of(net.heap, b, peek_value(net, buffers))


@compiled
def _decide(net, b, k):
    """What reader k would do in this cycle at scratchpad b, from the state at its start."""
    heap = net.heap
    here = reader_record(heap, b, k)
    r = heap[here + REGISTERS]
    heap[here + WANTS] = 0
    heap[here + READS] = 0
    if not can_pop(net, heap[r + BUFFERS]):
        return
    buffer = peek(net, heap[r + BUFFERS])
    reference = buffer
    if heap[r + REFERENCE] >= 0:
        if not can_pop(net, heap[r + REFERENCE]):
            return
        reference = peek(net, heap[r + REFERENCE])
    done = is_done(buffer)
    if heap[here + OWNERS] > 1 and heap[here + OWNER] != _owner(net, b, heap[r + BUFFERS]):
        return
    bare = is_bare(reference) or is_done(reference)
    if heap[r + REFERENCE] >= 0:
        stop = stop_of(reference)
        ends_use = stop >= heap[r + C]
        if (done != is_done(reference) or (not bare and (is_bare(buffer) or done))
                or (not is_done(reference) and ends_use and stop_of(buffer) != stop - heap[r + C])):
            heap[r + ERROR] = MISALIGNED
            return
    else:
        ends_use = bare or heap[r + PASSES] + 1 >= heap[r + REPEAT]
        stop = stop_of(buffer) + heap[r + C] if ends_use else 0
    affine = heap[r + AFFINE] == 1
    length = 0
    if not done and not is_bare(buffer):
        held = peek_value(net, heap[r + BUFFERS])
        if not is_live(heap, b, held):
            heap[r + ERROR] = FREED
            return
        length = length_of(heap, b, held)
    reads = not bare and length > 0
    last = True
    stepping = 0
    if reads:
        for j in range(LOOPS):
            if not _ends(heap, r, j, length):
                last = False
                stepping = j
                break
        if heap[r + START] >= length:
            heap[r + ERROR] = ADDRESS_RANGE
            return
    pass_stop = 0 if done else stop + heap[r + N]
    if pass_stop > 15:
        heap[r + ERROR] = STOP_RANGE
        return
    if heap[r + FULL] == 1 and not can_push(net, heap[r + OUT]):
        return
    heap[here + WANTS] = 1
    heap[here + READS] = 1 if reads else 0
    heap[r + LAST] = 1 if last else 0
    heap[r + STOP] = pass_stop if last else (stepping if affine else -1)
    heap[r + STEPPING] = stepping
    heap[r + ENDS_USE] = 1 if ends_use else 0
    heap[r + INDEX] = heap[r + START]
    heap[r + DONE_] = 1 if done else 0


@compiled
def _arbitrate(net, b):
    """Once a cycle: what every reader wants, and whose turn the read port is."""
    heap = net.heap
    settle(net, b)
    if heap[b + TURN] != -2:
        return
    readers = heap[b + READERS]
    for k in range(readers):
        _decide(net, b, k)
    heap[b + TURN] = -1
    for distance in range(readers):
        k = (heap[b + SERVED] + 1 + distance) % readers
        if heap[reader_record(heap, b, k) + READS] == 1:
            heap[b + TURN] = k
            heap[b + SERVED] = k
            break


@compiled
def step(u, par, st, ins, outs, net):
    """Issue a read (or a beat without an element), and offer the one issued before."""
    heap = net.heap
    for j in range(par[PADS]):
        _arbitrate(net, heap[par[PORTS] + 2 * j])
    b, k = heap[par[PORTS]], heap[par[PORTS] + 1]
    if par[PADS] > 1 and can_pop(net, ins[0]):
        owner = _owner(net, b, ins[0])
        b, k = heap[par[PORTS] + 2 * owner], heap[par[PORTS] + 2 * owner + 1]
    here = reader_record(heap, b, k)
    r = heap[here + REGISTERS]
    if heap[r + ERROR] != 0:
        fail(net, u, heap[r + ERROR])
    moved = False
    advance = True
    if heap[r + FULL] == 1:
        advance = can_push(net, outs[0])
        if advance:
            push(net, outs[0], heap[r + STAGE_TOKEN], heap[r + STAGE_VALUE])
            heap[r + FULL] = 0
            moved = True
    if heap[here + WANTS] == 0 or (heap[here + READS] == 1 and heap[b + TURN] != k):
        if moved:
            return BUSY
        return STARVED if advance else BLOCKED

    buffers = ins[0]
    reference = peek_value(net, buffers)
    if heap[here + READS] == 1:
        index = heap[r + INDEX]
        page_frames = heap[b + PAGE_FRAMES]
        page = heap[table_entry(heap, b, reference, index // page_frames)]
        frame = page * page_frames + index % page_frames
        tok = heap[frame_tokens(heap, b) + frame]
        heap[r + STAGE_VALUE] = heap[frame_values(heap, b) + frame]
        if heap[r + STOP] >= 0:
            tok = with_stop(tok, heap[r + STOP])
    elif heap[r + DONE_] == 1:
        tok = peek(net, buffers)
        heap[r + STAGE_VALUE] = 0
    else:
        tok = EMPTY | heap[r + STOP]
        heap[r + STAGE_VALUE] = 0
    heap[r + STAGE_TOKEN] = tok
    heap[r + FULL] = 1
    net.misc[2] += 1

    if heap[r + LAST] == 0:
        _advance(heap, r)
        return BUSY
    for j in range(LOOPS):
        heap[r + AT + j] = 0
        heap[r + START + j] = 0
    heap[r + PASSES] += 1
    if ins[1] >= 0:
        pop(net, ins[1])
    if heap[r + ENDS_USE] == 1 or heap[r + DONE_] == 1:
        heap[r + PASSES] = 0
        head = peek(net, buffers)
        if not is_done(head) and not is_bare(head):
            request_release(heap, b, k, reference)
        pop(net, buffers)
    return BUSY


@compiled
def _advance(heap, r):
    """The innermost loop that goes on steps; those inside it begin again where it then stands."""
    k = heap[r + STEPPING]
    stepped = (heap[r + START + k] + _stride(heap, r, k)) & COUNT_MASK
    heap[r + AT + k] += 1
    for j in range(k + 1):
        heap[r + START + j] = stepped
    for j in range(k):
        heap[r + AT + j] = 0
