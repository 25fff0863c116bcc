"""partition: a chunk to every output whose bit is set. Of references it counts the uses."""

from step_lang.errorcodes import ErrorCode
from step_lang.mapping.references import uses
from step_lang.types import BufferRef

from ...compiled import compiled
from ...selectors import selected, selects_beyond
from ..cost import TILE, beats, finish, leaves, leaves_last, meets, work_of
from ..network import (
    COLS,
    EMPTY,
    FIRST,
    LAST,
    NO_VALUE,
    ROWS,
    TOKEN,
    VALUE,
    available,
    change_uses,
    fail,
    field,
    is_done,
    pop,
    push,
    room,
    stop_of,
)
from . import UNKNOWN

KIND = "partition"
RANK, N, WIDTH, USES = range(4)      # USES: of a reference at each output, plus one; 0: no references
INSIDE, COUNTED, TAKEN = 0, 1, 2   # TAKEN: a word for each 32 outputs
MISALIGNED, SELECTOR, PROTOCOL = ErrorCode.MISALIGNED, ErrorCode.SELECTOR, ErrorCode.PROTOCOL


def pack(op, unit, build):
    """Rank and outputs."""
    par = build.par[unit]
    par[[RANK, N, WIDTH]] = op.rank, len(op.outputs), op.inputs[1].type.n
    if isinstance(op.inputs[0].type, BufferRef):
        par[USES] = build.reserve(len(op.outputs), [uses(output) for output in op.outputs]) + 1


@compiled
def step(u, par, st, ins, outs, net, now):
    """A token to every output that is selected, as each has room."""
    ready = available(net, u, ins[0], now)
    ready = available(net, u, ins[1], now) and ready
    if not ready:
        return False
    n, rank = par[N], par[RANK]
    token, selector = field(net, ins[0], TOKEN), field(net, ins[1], TOKEN)
    value, held = field(net, ins[1], VALUE), field(net, ins[0], VALUE)
    done, empty, bare = is_done(token), token & EMPTY != 0, selector & EMPTY != 0
    stop = stop_of(token)
    ends = not done and stop >= rank
    if done and st[INSIDE] != 0:
        return fail(net, u, PROTOCOL)
    if done != is_done(selector):
        return fail(net, u, MISALIGNED)
    if not done:
        if (ends and stop != stop_of(selector) + rank) or (bare and not (empty and ends)) or (
                not bare and empty and rank == 0):
            return fail(net, u, MISALIGNED)
        if not bare and value == NO_VALUE:
            return fail(net, u, UNKNOWN)
        if not bare and selects_beyond(net, value, par[WIDTH], n):
            return fail(net, u, SELECTOR)
    if par[USES] != 0 and not empty and st[COUNTED] == 0:
        made = 0
        for k in range(n):
            if selected(net, value, par[WIDTH], k):
                made += net.heap[par[USES] - 1 + k]
        change_uses(net, held, made - 1, now)
        st[COUNTED] = 1
    rows, cols = field(net, ins[0], ROWS), field(net, ins[0], COLS)
    last = field(net, ins[0], LAST)
    count = beats(net, u, rows, cols) if net.cost[u, TILE] > 0 and not empty else 1
    work = work_of(net, u, 0, 0, count)
    start = max(meets(net, u, ins[0], 0, net.free[u]), field(net, ins[1], FIRST))
    end = max(start + work - 1, last)
    out = (token & ~15) | rank if ends else token
    all_have = True
    moved = False
    for k in range(n):
        if not done and (bare or not selected(net, value, par[WIDTH], k)):
            continue
        word, bit = TAKEN + k // 32, 1 << (k % 32)
        if st[word] & bit:
            continue
        if room(net, u, outs[k], now):
            push(net, outs[k], out, held, rows, cols, leaves(net, u, start, end), leaves_last(net, u, end))
            st[word] |= bit
            moved = True
        else:
            all_have = False
    if not all_have:
        return moved
    for word in range(TAKEN, TAKEN + (n + 31) // 32):
        st[word] = 0
    st[COUNTED] = 0
    st[INSIDE] = 0 if ends or done else 1
    finish(net, u, start, last, work)
    pop(net, ins[0], end + 1)
    if ends or done:
        pop(net, ins[1], end + 1)
    return True
