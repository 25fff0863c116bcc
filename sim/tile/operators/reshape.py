"""reshape: a dimension in chunks, the last one padded; and flags that say which elements are padding."""

import math

from step_lang.errorcodes import ErrorCode
from step_lang.types import Tile

from ...compiled import compiled
from ..cost import TILE, beats, finish, leaves, leaves_last, meets, starts, work_of
from ..network import (
    COLS,
    EMPTY,
    LAST,
    NO_VALUE,
    ROWS,
    TOKEN,
    VALUE,
    available,
    fail,
    field,
    is_bare,
    is_done,
    pop,
    push,
    room,
    stop_of,
)

KIND = "reshape"
CHUNK, DIM, PADS, FLAG_RANK, PAD_VALUE, PAD_ROWS, PAD_COLS, INNER, LOOPS = range(9)
LOOP0 = 9   # sizes of the inner dimensions, innermost first
POSITION, FILLING, LAST_STOP = range(3)
SHAPE, PROTOCOL = ErrorCode.SHAPE, ErrorCode.PROTOCOL


def pack(op, unit, build):
    """Chunk, dimension, and padding."""
    par, type_ = build.par[unit], op.inputs[0].type
    par[[CHUNK, DIM, PADS, FLAG_RANK]] = op.chunk, op.dim, op.pad is not None, op.flag_rank
    par[PAD_VALUE] = NO_VALUE
    if isinstance(type_, Tile) and type_.is_static:
        par[[PAD_ROWS, PAD_COLS]] = type_.rows, type_.cols
    inner = [size for size in reversed(op.inner_shape) if isinstance(size, int)]
    par[[INNER, LOOPS]] = math.prod(inner), len(inner)
    par[LOOP0:LOOP0 + len(inner)] = inner


@compiled
def _give(net, u, par, outs, token, value, rows, cols, flag, first, last):
    push(net, outs[0], token, value, rows, cols, first, last)
    if is_done(token) or stop_of(token) >= par[FLAG_RANK]:
        push(net, outs[1], token if is_done(token) else token - par[FLAG_RANK], 0 if token & EMPTY else flag, 1, 1,
             last, last)


@compiled
def step(u, par, st, ins, outs, net, now):
    """One token, or one element of padding."""
    if not room(net, u, outs[0], now) or not room(net, u, outs[1], now):
        return False
    if st[FILLING] > 0:
        rows, cols = par[PAD_ROWS], par[PAD_COLS]
        count = beats(net, u, rows, cols) if net.cost[u, TILE] > 0 else 0
        start = starts(net, u, outs[0])
        end = finish(net, u, start, start, work_of(net, u, 0, 0, count))
        st[FILLING] -= 1
        left = st[FILLING]
        stop = st[LAST_STOP]
        if left > 0:
            stop = 0
            size = 1
            for k in range(par[LOOPS]):
                size *= par[LOOP0 + k]
                if left % size != 0:
                    break
                stop = k + 1
        _give(net, u, par, outs, stop, par[PAD_VALUE], rows, cols, 1, leaves(net, u, start, end),
              leaves_last(net, u, end))
        return True
    if not available(net, u, ins[0], now):
        return False
    token = field(net, ins[0], TOKEN)
    stop, dim = stop_of(token), par[DIM]
    last = field(net, ins[0], LAST)
    start = meets(net, u, ins[0], 0, starts(net, u, outs[0]))
    if is_done(token):
        if st[POSITION] > 0:
            if par[PADS] == 0:
                return fail(net, u, PROTOCOL)
            st[FILLING] = (par[CHUNK] - st[POSITION]) * par[INNER]
            st[LAST_STOP] = dim + 1
            st[POSITION] = 0
            return True
        end = finish(net, u, start, last, 1)
        _give(net, u, par, outs, token, 0, 0, 0, 0, end + 1, end + 1)
        pop(net, ins[0], end + 1)
        return True
    rows, cols, value = field(net, ins[0], ROWS), field(net, ins[0], COLS), field(net, ins[0], VALUE)
    count = beats(net, u, rows, cols) if net.cost[u, TILE] > 0 else 0
    if is_bare(token):
        end = finish(net, u, start, last, 1)
        if dim > 0 and stop >= dim:
            if stop > dim and st[POSITION] == 0:
                stop += 1
            else:
                st[POSITION] = (st[POSITION] + 1) % par[CHUNK]
                if stop > dim and st[POSITION] != 0:
                    return fail(net, u, SHAPE)
                if stop > dim or st[POSITION] == 0:
                    stop += 1
        elif stop >= dim:
            stop += 1
        _give(net, u, par, outs, EMPTY | stop, 0, 0, 0, 0, end + 1, end + 1)
        pop(net, ins[0], end + 1)
        return True
    if stop >= dim:
        st[POSITION] += 1
        if st[POSITION] == par[CHUNK]:
            st[POSITION] = 0
            stop += 1
        elif stop > dim:
            if par[PADS] == 0:
                return fail(net, u, PROTOCOL)
            st[FILLING] = (par[CHUNK] - st[POSITION]) * par[INNER]
            st[LAST_STOP] = stop + 1
            st[POSITION] = 0
            stop = dim
    end = finish(net, u, start, last, work_of(net, u, 0, 0, count))
    _give(net, u, par, outs, stop, value, rows, cols, 0, leaves(net, u, start, end), leaves_last(net, u, end))
    pop(net, ins[0], end + 1)
    return True
