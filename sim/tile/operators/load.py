"""Loads and input streams: tiles at addresses that a view, another stream or the host gives."""

from step_lang.errorcodes import ErrorCode
from step_lang.ops._views import view_indices

from ...compiled import compiled
from ..cost import LATENCY, TILE, beats, comes, meets, starts, whole
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
    EMPTY,
    NO_VALUE,
    READ,
    TOKEN,
    VALUE,
    available,
    fail,
    field,
    is_bare,
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

KINDS = ("input_stream", "linear_offchip_load", "random_offchip_load")
(MODE, MEMORY, PORT, WINDOW, RING, ROWS, COLS, BYTES, BURSTS, BASE, LIMIT, DIMS, POSITIONS, LOOPS_AT, TABLE,
 BURST_BYTES, ELEMENTS, GRID) = range(18)
# ELEMENTS: physical tiles of a tile, 0 where the memory is asked for bursts; GRID: where the tensor's grid lies.
HOST, VIEW, BY_REFERENCE, BY_ADDRESS = range(4)
PLACE, HEAD, PENDING, OVER, GIVES_AT = range(5)
ADDRESS_RANGE = ErrorCode.ADDRESS_RANGE
ENTRY = 3   # of the ring: token, control value, whether it was asked of the memory


def pack(op, unit, build):
    """Addresses, and a ring of what was asked for and has not left."""
    par, out = build.par[unit], op.output
    if op.kind == "input_stream":
        tokens = build.host_tokens(op)
        par[[MODE, POSITIONS]] = HOST, len(tokens)
        par[TABLE] = build.reserve(tokens.size, tokens.ravel())
        par[[ROWS, COLS]] = getattr(out.type, "rows", 1), getattr(out.type, "cols", 1)
        nbytes = int(out.type.nbytes)
        par[BASE] = build.place(len(tokens) * nbytes)
    else:
        par[[ROWS, COLS]] = op.tile.rows, op.tile.cols
        nbytes = int(op.tile.nbytes)
        par[BASE] = build.place_tensor(op.tensor)
        par[LIMIT] = op.grid[0] * op.grid[1]
        if op.kind == "linear_offchip_load":
            par[MODE] = BY_REFERENCE if op.inputs else VIEW
            indices = view_indices(op.view_shape, op.view_stride)
            par[[POSITIONS, DIMS]] = len(indices), len(op.view_shape)
            par[TABLE] = build.reserve(len(indices), indices)
            sizes = list(reversed(op.view_shape))
            par[LOOPS_AT] = build.reserve(len(sizes), sizes)
        else:
            par[MODE] = BY_ADDRESS
    par[[BYTES, BURSTS]] = nbytes, build.memory.bursts(nbytes)
    par[BURST_BYTES] = build.memory.config.burst_bytes
    par[[MEMORY, WINDOW]] = build.memory.at, build.window(out.type)
    par[ELEMENTS], par[GRID], order = build.elements(op, out, None if op.kind == "input_stream" else op.grid)
    par[PORT] = make_port(build.memory, unit, False, int(par[WINDOW]), build, order, int(par[BASE]))
    par[RING] = build.reserve(ENTRY * int(par[WINDOW]))


@compiled
def _stop_at(net, par, place):
    """Stop of a view's position."""
    size = 1
    stop = 0
    for k in range(par[DIMS]):
        size *= net.heap[par[LOOPS_AT] + k]
        if (place + 1) % size != 0:
            break
        stop = k + 1
    return stop


@compiled
def _note(net, u, par, st, token, value, index, time):
    """Put a token into the ring, and ask for its tile at ``time``."""
    asked = token & EMPTY == 0
    at = par[RING] + (st[HEAD] + st[PENDING]) % par[WINDOW] * ENTRY
    net.heap[at] = token
    net.heap[at + 1] = value
    net.heap[at + 2] = asked
    st[PENDING] += 1
    if asked:
        if par[ELEMENTS] > 0:
            first = first_element(net, par[GRID], index)
            request(net, par[MEMORY], par[PORT], par[ELEMENTS], first, par[BYTES], time, par[ELEMENTS] - 1)
        else:
            first = (par[BASE] + index * par[BYTES]) // par[BURST_BYTES]
            request(net, par[MEMORY], par[PORT], par[BURSTS], first, par[BYTES], time, 0)


@compiled
def _ask(u, par, st, ins, net, now):
    """Go one position further; whether it could."""
    if st[PENDING] == par[WINDOW] or not requests_room(net, par[PORT]) or st[OVER] != 0:
        return False
    mode = par[MODE]
    if mode == HOST:
        at = par[TABLE] + 2 * st[PLACE]
        _note(net, u, par, st, net.heap[at], net.heap[at + 1], st[PLACE], now)
        st[PLACE] += 1
        st[OVER] = st[PLACE] == par[POSITIONS]
        return True
    if mode == VIEW:
        if st[PLACE] == par[POSITIONS]:
            _note(net, u, par, st, EMPTY | 32, 0, 0, now)
            st[OVER] = 1
            return True
        stop = _stop_at(net, par, st[PLACE])
        # The outermost dimension has no stop of its own.
        stop = min(stop, par[DIMS] - 1)
        _note(net, u, par, st, stop, NO_VALUE, net.heap[par[TABLE] + st[PLACE]], now)
        st[PLACE] += 1
        return True
    if not available(net, u, ins[0], now) or not whole(net, u, ins[0], 0, now):
        return False
    token = field(net, ins[0], TOKEN)
    time = meets(net, u, ins[0], 0, now)
    if is_done(token):
        _note(net, u, par, st, token, 0, 0, now)
        pop(net, ins[0], now + 1)
        return True
    if mode == BY_ADDRESS:
        index = field(net, ins[0], VALUE)
        if not is_bare(token):
            if index == NO_VALUE:
                return fail(net, u, UNKNOWN)
            if index < 0 or index >= par[LIMIT]:
                return fail(net, u, ADDRESS_RANGE)
        _note(net, u, par, st, token, NO_VALUE, index, time)
        pop(net, ins[0], now + 1)
        return True
    if is_bare(token):
        _note(net, u, par, st, EMPTY | (stop_of(token) + par[DIMS]), 0, 0, now)
        pop(net, ins[0], now + 1)
        return True
    stop = _stop_at(net, par, st[PLACE])
    index = net.heap[par[TABLE] + st[PLACE]]
    st[PLACE] += 1
    if st[PLACE] == par[POSITIONS]:
        stop = par[DIMS] + stop_of(token)
        st[PLACE] = 0
        pop(net, ins[0], max(now + 1, comes(net, u, ins[0], 0)))
    _note(net, u, par, st, stop, NO_VALUE, index, time)
    return True


@compiled
def _give(u, par, st, outs, net, now):
    """Give the oldest token, if its tile has come; whether it could."""
    if st[PENDING] == 0:
        return False
    at = par[RING] + st[HEAD] * ENTRY
    token = net.heap[at]
    if net.heap[at + 2] == 0:
        if not room(net, u, outs[0], now):
            return False
        push(net, outs[0], token, 0, 0, 0, now + 1, now + 1)
    else:
        if not completed(net, par[PORT]) or not room(net, u, outs[0], now):
            return False
        first, last = completion_first(net, par[PORT]), completion_last(net, par[PORT])
        arrives = first
        if net.cost[u, TILE] == 0:
            first = last
        leaves = first + net.cost[u, LATENCY]   # until then its place is taken
        if leaves > now:
            wake(net, u, leaves)
            return False
        take_completion(net, par[PORT])
        record_bytes(net, READ, arrives, last, par[BYTES])
        work = beats(net, u, par[ROWS], par[COLS]) if net.cost[u, TILE] > 0 else 1
        start = max(first, starts(net, u, outs[0]), st[GIVES_AT])
        end = max(start + work - 1, last)
        record_work(net, u, start, end, work)
        begins = (start if net.cost[u, TILE] > 0 else end) + 1 + net.cost[u, LATENCY]
        push(net, outs[0], token, net.heap[at + 1], par[ROWS], par[COLS], begins, end + 1 + net.cost[u, LATENCY])
        if net.cost[u, TILE] > 0:
            st[GIVES_AT] = end + 1
    st[HEAD] = (st[HEAD] + 1) % par[WINDOW]
    st[PENDING] -= 1
    return True


@compiled
def step(u, par, st, ins, outs, net, now):
    """Ask for a tile, give one."""
    gave = _give(u, par, st, outs, net, now)
    asked = _ask(u, par, st, ins, net, now)
    return gave or asked
