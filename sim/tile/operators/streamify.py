"""streamify: whole passes over buffers, one for each element of a reference stream."""

from step_lang.errorcodes import ErrorCode
from step_lang.mapping.references import family_of

from ...compiled import compiled
from ..cost import TILE, beats, comes, finish, leaves, leaves_last, meets, starts, work_of
from ..functions import element_bytes
from ..network import (
    EMPTY,
    LAST,
    NODE_NEXT,
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

KIND = "streamify"
REPEAT, PASSES_RANK, PASS_RANK, BYTES, LOOPS = range(5)
LOOP0 = 16          # count (0: open) and stride of each loop of a view, innermost first
ROUND, PLACE, NODE, AT = range(4)
MISALIGNED, ADDRESS_RANGE = ErrorCode.MISALIGNED, ErrorCode.ADDRESS_RANGE


def pack(op, unit, build):
    """Passes (0: by reference) and view. Raises `UnknownFunction` where the uses of its references are not known."""
    family_of(op.inputs[0])
    par = build.par[unit]
    par[[REPEAT, PASSES_RANK, PASS_RANK]] = op.repeat or 0, op.passes_rank, op.pass_rank
    par[BYTES] = element_bytes(op.output.type)
    if op.view_shape is not None:
        par[LOOPS] = len(op.view_shape)
        for k, (count, stride) in enumerate(zip(reversed(op.view_shape), reversed(op.view_stride))):
            par[LOOP0 + 2 * k:LOOP0 + 2 * k + 2] = count or 0, stride


@compiled
def step(u, par, st, ins, outs, net, now):
    """One element of a pass."""
    if not available(net, u, ins[0], now) or not room(net, u, outs[0], now):
        return False
    head = field(net, ins[0], TOKEN)
    n, c = par[PASS_RANK], par[PASSES_RANK]
    by_reference = par[REPEAT] == 0
    if by_reference:
        if not available(net, u, ins[1], now):
            return False
        token = field(net, ins[1], TOKEN)
        if is_done(token) != is_done(head):
            return fail(net, u, MISALIGNED)
    else:
        token = head
        if head & EMPTY == 0:
            token = stop_of(head) + 1 if st[ROUND] == par[REPEAT] - 1 else 0
        elif not is_done(head):
            token = head + 1
    last = field(net, ins[0], LAST)
    start = meets(net, u, ins[0], 0, starts(net, u, outs[0]))
    if by_reference:
        start, last = meets(net, u, ins[1], 1, start), max(last, comes(net, u, ins[1], 1))
    if is_done(head):
        end = finish(net, u, start, last, 1)
        push(net, outs[0], head, 0, 0, 0, end + 1, end + 1)
        pop(net, ins[0], end + 1)
        if by_reference:
            pop(net, ins[1], end + 1)
        return True
    s = stop_of(token)
    bare = token & EMPTY != 0
    frees = s >= c
    if not bare and head & EMPTY:
        return fail(net, u, MISALIGNED)
    if frees and stop_of(head) != s - c:
        return fail(net, u, MISALIGNED)
    over = True
    b = field(net, ins[0], VALUE)
    if bare or net.buffers[b, 2] == 0:
        end = finish(net, u, start, last, 1)
        push(net, outs[0], EMPTY | (s + n), 0, 0, 0, end + 1, end + 1)
    else:
        size = net.buffers[b, 2]
        index = st[PLACE]
        stop = -1
        if par[LOOPS] > 0:
            # The place counts positions of the view; an open loop has as many as keep the index inside the buffer.
            index = 0
            left = st[PLACE]
            ends = True
            stop = 0
            for k in range(par[LOOPS]):
                count, stride = par[LOOP0 + 2 * k], par[LOOP0 + 2 * k + 1]
                if count == 0:
                    # Closed loops outside: their index is found by going through their rounds.
                    at_outer = 0
                    while True:
                        base = 0
                        rest = at_outer
                        for j in range(k + 1, par[LOOPS]):
                            base += rest % par[LOOP0 + 2 * j] * par[LOOP0 + 2 * j + 1]
                            rest //= par[LOOP0 + 2 * j]
                        here = max(1, -(-(size - base) // stride))
                        if left < here:
                            break
                        left -= here
                        at_outer += 1
                    index += left * stride
                    ends = ends and left == here - 1
                    left = at_outer
                else:
                    at = left % count
                    index += at * stride
                    left //= count
                    ends = ends and at == count - 1
                if ends:
                    stop = k + 1
            over = stop == par[LOOPS]
            if index < 0 or index >= size:
                return fail(net, u, ADDRESS_RANGE)
        if index < st[AT] or st[PLACE] == 0:
            st[NODE], st[AT] = net.buffers[b, 0], 0
        while st[AT] < index:
            st[NODE] = net.nodes[st[NODE], NODE_NEXT]
            st[AT] += 1
        node = st[NODE]
        token_in = net.nodes[node, 0]
        if stop < 0:
            over = st[PLACE] == size - 1
            stop = stop_of(token_in)
        if over:
            stop = s + n
        rows, cols = net.nodes[node, 2], net.nodes[node, 3]
        count = beats(net, u, rows, cols) if net.cost[u, TILE] > 0 else 0
        end = finish(net, u, start, last, work_of(net, u, 0, rows * cols * par[BYTES], count))
        push(net, outs[0], (token_in & EMPTY) | stop, net.nodes[node, 1], rows, cols, leaves(net, u, start, end),
             leaves_last(net, u, end))
        st[PLACE] += 1
    if over:
        st[PLACE] = 0
        if by_reference:
            pop(net, ins[1], end + 1)
        else:
            st[ROUND] = 0 if frees else st[ROUND] + 1
        if frees:
            if head & EMPTY == 0:
                change_uses(net, b, -1, end + 1)
            pop(net, ins[0], end + 1)
    return True
