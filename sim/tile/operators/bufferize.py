"""bufferize: elements to a buffer, whose reference leaves when it is complete."""

from step_lang.errorcodes import ErrorCode
from step_lang.mapping.references import uses

from ...compiled import compiled
from ..cost import TILE, beats, finish, meets, work_of
from ..functions import element_bytes
from ..network import (
    COLS,
    EMPTY,
    LAST,
    RECORD_FREED,
    RECORD_LIVE,
    RECORD_PAGE,
    RECORD_WORDS,
    ROWS,
    TOKEN,
    VALUE,
    append,
    available,
    change_uses,
    fail,
    field,
    is_bare,
    is_done,
    new_buffer,
    pop,
    push,
    room,
    stop_of,
)

KIND = "bufferize"
RANK, BYTES, RECORD, LIVE, HOLLOW, FRAMES, USES = range(7)
OPEN, BUFFER, FILLED = range(3)
EXHAUSTED = ErrorCode.EXHAUSTED


def pack(op, unit, build):
    """Rank, bytes of an element of a tile, buffers that may be live, physical tiles that the scratchpad has."""
    par = build.par[unit]
    record = build.reserve(RECORD_WORDS, [unit])
    build.preset(record + RECORD_PAGE, [build.machine.page_bytes(op.inputs[0].type)])
    par[[RANK, BYTES, RECORD, LIVE, HOLLOW, FRAMES]] = (op.rank, element_bytes(op.inputs[0].type), record,
                                                       build.live_buffers, op.hollow, build.machine.frames)
    par[USES] = uses(op.output)
    build.records[unit] = record


@compiled
def step(u, par, st, ins, outs, net, now):
    """One element."""
    if not available(net, u, ins[0], now):
        return False
    token = field(net, ins[0], TOKEN)
    stop, last = stop_of(token), field(net, ins[0], LAST)
    start = meets(net, u, ins[0], 0, net.free[u])
    closes = is_done(token) or stop >= par[RANK]
    if closes and not room(net, u, outs[0], now):
        return False
    if is_done(token):
        end = finish(net, u, start, last, 1)
        push(net, outs[0], token, 0, 0, 0, end + 1, end + 1)
        pop(net, ins[0], end + 1)
        return True
    if is_bare(token) and stop > par[RANK] and st[OPEN] == 0 and par[HOLLOW] != 0:
        end = finish(net, u, start, last, 1)
        push(net, outs[0], EMPTY | (stop - par[RANK]), 0, 0, 0, end + 1, end + 1)
        pop(net, ins[0], end + 1)
        return True
    if st[OPEN] == 0:
        live = net.heap[par[RECORD] + RECORD_LIVE]
        if live == par[LIVE]:
            return False
        if live == par[LIVE] - 1:
            start = max(start, net.heap[par[RECORD] + RECORD_FREED])
        st[BUFFER] = new_buffer(net, par[RECORD])
        st[OPEN], st[FILLED] = 1, 0
    rows, cols = field(net, ins[0], ROWS), field(net, ins[0], COLS)
    bare = is_bare(token)
    nbytes = 0 if bare else rows * cols * par[BYTES]
    count = beats(net, u, rows, cols) if net.cost[u, TILE] > 0 and not bare else 1
    if not bare:
        st[FILLED] += count
        if st[FILLED] > par[FRAMES] > 0:
            return fail(net, u, EXHAUSTED)
    end = finish(net, u, start, last, work_of(net, u, 0, nbytes, count))
    if not bare or stop < par[RANK]:
        append(net, st[BUFFER], token, field(net, ins[0], VALUE), rows, cols, nbytes)
    if closes:
        push(net, outs[0], stop - par[RANK], st[BUFFER], 1, 1, end + 1, end + 1)
        change_uses(net, st[BUFFER], par[USES] - 1, end + 1)
        st[OPEN] = 0
    pop(net, ins[0], end + 1)
    return True
