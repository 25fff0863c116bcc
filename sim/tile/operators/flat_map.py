"""flat_map: an element becomes a stream: addresses, counts, or the rows of a tile."""

import math

from step_lang.errorcodes import ErrorCode
from step_lang.errors import UnknownFunction

from ...compiled import compiled
from ..cost import TILE, beats, ceil_div, comes, finish, leaves, leaves_last, meets, starts, there, whole, work_of
from ..held import HELD, HELD_END, hold, release
from ..network import (
    COLS,
    EMPTY,
    NO_VALUE,
    ROWS,
    TOKEN,
    VALUE,
    available,
    fail,
    field,
    is_done,
    pop,
    push,
    room,
    stop_of,
)
from . import UNKNOWN

KIND = "flat_map"
MODE, RANK, LOOPS, BASE, SCALE, STRIDE, SPLIT, DROP, ROWS_STATIC = range(9)
LOOP0 = 16          # count and stride of each loop of an affine view, innermost first
AFFINE, RANGE, COUNTER, SPLIT_ROWS = range(4)
MODES = {"affine_addresses": AFFINE, "address_range": RANGE, "counter": COUNTER, "split_rows": SPLIT_ROWS}
PIECE = HELD_END
MOST_LOOPS = 16
ADDRESS_RANGE = ErrorCode.ADDRESS_RANGE


def pack(op, unit, build):
    """The function's parameters."""
    par, fn = build.par[unit], op.fn
    if fn.name not in MODES:
        raise UnknownFunction(f"flat_map of {fn.name!r} vs {', '.join(MODES)} at tile fidelity", operator=op)
    par[[MODE, RANK]] = MODES[fn.name], op.rank
    if fn.name == "affine_addresses":
        par[[LOOPS, BASE, SCALE]] = len(fn.params["shape"]), fn.params["base"], fn.params["scale"]
        for k, (count, stride) in enumerate(zip(reversed(fn.params["shape"]), reversed(fn.params["stride"]))):
            par[LOOP0 + 2 * k:LOOP0 + 2 * k + 2] = count, stride
        par[SPLIT] = math.prod(fn.params["shape"])
    elif fn.name == "address_range":
        par[STRIDE] = fn.params["stride"]
    elif fn.name == "split_rows":
        par[[SPLIT, DROP]] = fn.params["rows"], fn.params["drop_padding"]


@compiled
def _nothing(net, u, par, st, ins, outs, stop, start, last):
    """A bare stop, or an element without a piece: if it closes anything, the stop is that of the piece before it."""
    end = finish(net, u, start, last, 1)
    if st[HELD] != 0 and stop > 0:
        release(net, st, outs[0], stop + par[RANK], start)
    elif stop > 0:
        push(net, outs[0], EMPTY | (stop + par[RANK]), 0, 0, 0, end + 1, end + 1)
    pop(net, ins[0], end + 1)
    return True


@compiled
def _beats_of_piece(i, rows, cols, t):
    """First and last beat of those that piece ``i`` of ``rows`` rows is made of: rows of a physical tile leave when all
    tiles beside it are there."""
    across = ceil_div(cols, t)
    if rows >= t:
        return i * rows // t * across, (i + 1) * rows // t * across - 1
    last = (i * rows // t + 1) * across - 1
    return last, last


@compiled
def step(u, par, st, ins, outs, net, now):
    """One piece; take the element with the last. Where pieces have no stop of their own (rank 0), the last one of an
    element without stop is held until it is known whether a stop follows."""
    if not available(net, u, ins[0], now) or not whole(net, u, ins[0], 0, now) or not room(net, u, outs[0], now):
        return False
    token = field(net, ins[0], TOKEN)
    last = comes(net, u, ins[0], 0)
    start = meets(net, u, ins[0], 0, starts(net, u, outs[0]))
    if is_done(token):
        if st[HELD] != 0:
            release(net, st, outs[0], 0, start)
            return True
        end = finish(net, u, start, last, 1)
        push(net, outs[0], token, 0, 0, 0, end + 1, end + 1)
        pop(net, ins[0], end + 1)
        return True
    stop = stop_of(token)
    mode, rank = par[MODE], par[RANK]
    if token & EMPTY:
        return _nothing(net, u, par, st, ins, outs, stop, start, last)
    value, rows, cols = field(net, ins[0], VALUE), field(net, ins[0], ROWS), field(net, ins[0], COLS)
    if mode != SPLIT_ROWS and value == NO_VALUE:
        return fail(net, u, UNKNOWN)
    if mode == AFFINE:
        pieces = par[SPLIT]
    elif mode == RANGE:
        pieces = (value >> 32) & 0xFFFFFFFF
    elif mode == COUNTER:
        pieces = value
    else:
        pieces = -(-rows // par[SPLIT])
    if pieces == 0:
        return _nothing(net, u, par, st, ins, outs, stop, start, last)
    if st[HELD] != 0:
        release(net, st, outs[0], 0, start)
        return True
    i = st[PIECE]
    out_value, out_rows, out_cols, out_stop = NO_VALUE, 1, 1, 0
    if mode == AFFINE:
        out_value = par[BASE] + value * par[SCALE]
        left = i
        ends = True
        for k in range(par[LOOPS]):
            size = par[LOOP0 + 2 * k]
            at = left % size
            out_value += at * par[LOOP0 + 2 * k + 1]
            left //= size
            ends = ends and at == size - 1
            if ends:
                out_stop = k + 1
        out_stop = min(out_stop, rank)
    elif mode == RANGE:
        out_value = (value & 0xFFFFFFFF) + i * par[STRIDE]
    elif mode == COUNTER:
        out_value = i
    else:
        out_cols = cols
        out_rows = par[SPLIT]
        if par[DROP] != 0:
            out_rows = min(out_rows, rows - i * out_rows)
    if mode <= RANGE and (out_value < 0 or out_value > 0xFFFFFFFF):
        return fail(net, u, ADDRESS_RANGE)
    st[PIECE] += 1
    over = st[PIECE] == pieces
    if over:
        out_stop = rank + stop
        st[PIECE] = 0
    count = beats(net, u, out_rows, out_cols) if net.cost[u, TILE] > 0 else 0
    if mode == SPLIT_ROWS and net.cost[u, TILE] > 0:
        first_beat, last_beat = _beats_of_piece(i, par[SPLIT], cols, net.cost[u, TILE])
        start, last = max(start, there(net, u, ins[0], 0, first_beat)), there(net, u, ins[0], 0, last_beat)
    end = finish(net, u, start, last, work_of(net, u, 0, 0, count))
    if over and mode != AFFINE and out_stop == 0:
        hold(net, u, st, out_stop, out_value, out_rows, out_cols, start, end)
    else:
        push(net, outs[0], out_stop, out_value, out_rows, out_cols, leaves(net, u, start, end),
             leaves_last(net, u, end))
    if over:
        pop(net, ins[0], end + 1)
    return True
