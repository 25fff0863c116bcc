"""Stores: tiles to addresses in order of arrival, or as another stream says, which acknowledge what is in memory."""

from step_lang.errorcodes import ErrorCode
from step_lang.ops._views import view_indices

from ...compiled import compiled
from ..cost import beats_of, ceil_div, comes, meets
from ..functions import element_bytes
from ..memory import (
    completed,
    completion_first,
    completion_last,
    first_element,
    make_port,
    request,
    requests_room,
    take_completion,
)
from ..network import (
    COLS,
    EMPTY,
    NO_VALUE,
    ROWS,
    TOKEN,
    VALUE,
    WRITTEN,
    available,
    fail,
    field,
    is_done,
    pop,
    push,
    record_bytes,
    record_work,
    room,
    stop_of,
    wake,
)
from . import UNKNOWN

KINDS = ("linear_offchip_store", "random_offchip_store")
(MEMORY, PORT, WINDOW, RING, BYTES, BASE, LIMIT, TABLE, RANDOM, RANK, BURST_BYTES, ELEMENTS, GRID) = range(13)
DONE_STATE, PLACE, HEAD, PENDING, TAKES_AT = range(5)
ADDRESS_RANGE, OVERFLOW, MISALIGNED = ErrorCode.ADDRESS_RANGE, ErrorCode.OVERFLOW, ErrorCode.MISALIGNED


def pack(op, unit, build):
    """Addresses, and a ring of acknowledgements to come."""
    par = build.par[unit]
    par[RANDOM] = op.kind == "random_offchip_store"
    par[BYTES] = element_bytes(op.tile)
    par[[MEMORY, WINDOW, BURST_BYTES]] = build.memory.at, build.window(op.tile), build.memory.config.burst_bytes
    par[ELEMENTS], par[GRID], order = build.elements(op, op.inputs[-1], op.grid)
    par[BASE] = build.place_tensor(op.tensor)
    par[PORT] = make_port(build.memory, unit, True, int(par[WINDOW]), build, order, int(par[BASE]))
    par[RING] = build.reserve(2 * int(par[WINDOW]))
    if par[RANDOM]:
        par[[LIMIT, RANK]] = op.grid[0] * op.grid[1], op.rank
    else:
        indices = view_indices(op.view_shape, op.view_stride)
        par[LIMIT] = len(indices)
        par[TABLE] = build.reserve(len(indices), indices)


@compiled
def _retire(u, par, st, outs, net, now):
    """What is in memory; whether there was something."""
    if st[PENDING] == 0:
        return False
    at = par[RING] + st[HEAD] * 2
    token, asked = net.heap[at], net.heap[at + 1]
    if asked != 0:
        if not completed(net, par[PORT]):
            return False
        last = completion_last(net, par[PORT])
        if last > now:
            wake(net, u, last)
            return False
    if par[RANDOM] != 0 and (is_done(token) or stop_of(token) >= par[RANK]):
        if not room(net, u, outs[0], now):
            return False
        push(net, outs[0], token if is_done(token) else token - par[RANK], 0 if token & EMPTY else 1, 1, 1, now + 1,
             now + 1)
    if asked != 0:
        record_bytes(net, WRITTEN, completion_first(net, par[PORT]) - 1, completion_last(net, par[PORT]) - 1, asked)
        take_completion(net, par[PORT])
    if is_done(token):
        st[DONE_STATE] = 1
        net.free[u] = st[TAKES_AT]
    st[HEAD] = (st[HEAD] + 1) % par[WINDOW]
    st[PENDING] -= 1
    return True


@compiled
def _take(u, par, st, ins, net, now):
    """Take a tile; whether it could. What is in memory is acknowledged meanwhile."""
    data = ins[par[RANDOM]]
    ready = available(net, u, data, now)
    if par[RANDOM] != 0:
        ready = available(net, u, ins[0], now) and ready
    if not ready or st[PENDING] == par[WINDOW] or not requests_room(net, par[PORT]):
        return False
    if st[TAKES_AT] > now:
        wake(net, u, st[TAKES_AT])
        return False
    token = field(net, data, TOKEN)
    last = comes(net, u, data, par[RANDOM])
    index = 0
    if par[RANDOM] != 0:
        if field(net, ins[0], TOKEN) != token:
            return fail(net, u, MISALIGNED)
        index = field(net, ins[0], VALUE)
        if token & EMPTY == 0:
            if index == NO_VALUE:
                return fail(net, u, UNKNOWN)
            if index < 0 or index >= par[LIMIT]:
                return fail(net, u, ADDRESS_RANGE)
    elif token & EMPTY == 0:
        if st[PLACE] >= par[LIMIT]:
            return fail(net, u, OVERFLOW)
        index = net.heap[par[TABLE] + st[PLACE]]
        st[PLACE] += 1
    rows, cols = field(net, data, ROWS), field(net, data, COLS)
    count = beats_of(net, u, token, rows, cols)
    nbytes = 0 if token & EMPTY else rows * cols * par[BYTES]
    start = meets(net, u, data, par[RANDOM], st[TAKES_AT])
    if par[RANDOM] != 0:
        start = meets(net, u, ins[0], 0, start)
    end = max(start + count - 1, last)
    st[TAKES_AT] = end + 1
    record_work(net, u, start, end, count)
    at = par[RING] + (st[HEAD] + st[PENDING]) % par[WINDOW] * 2
    net.heap[at] = token
    net.heap[at + 1] = nbytes
    st[PENDING] += 1
    if nbytes > 0:
        if par[ELEMENTS] > 0:
            time = max(now, start)
            request(net, par[MEMORY], par[PORT], count, first_element(net, par[GRID], index), nbytes, time, end - time)
        else:
            first = (par[BASE] + index * nbytes) // par[BURST_BYTES]
            request(net, par[MEMORY], par[PORT], ceil_div(nbytes, par[BURST_BYTES]), first, nbytes, max(now, end),
                    0)
    pop(net, data, end + 1)
    if par[RANDOM] != 0:
        pop(net, ins[0], end + 1)
    return True


@compiled
def step(u, par, st, ins, outs, net, now):
    """Take a tile, acknowledge one."""
    retired = _retire(u, par, st, outs, net, now)
    took = _take(u, par, st, ins, net, now)
    return retired or took
