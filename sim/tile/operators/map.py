"""map: a function of each element."""

from step_lang.errorcodes import ErrorCode

from ...compiled import compiled
from ..cost import comes, finish, give_bare, leaves_last, leaves_led, starts
from ..functions import (
    NO_INDEX,
    UNKNOWN_ROWS,
    arity_of,
    call_cost,
    led,
    pack_function,
    result,
    result_cols,
    result_rows,
    sizes_fit,
    tail,
)
from ..joins import all_there, join, sizes
from ..network import TOKEN, VALUE, fail, field, is_bare, is_done, pop, push, room
from . import UNKNOWN

KIND = "map"
MISALIGNED, SHAPE, SELECTOR = ErrorCode.MISALIGNED, ErrorCode.SHAPE, ErrorCode.SELECTOR


def pack(op, unit, build):
    """The function, as `sim.tile.functions` says."""
    pack_function(op, unit, build)


@compiled
def step(u, par, st, ins, outs, net, now):
    """Take one element of each input, give one."""
    n = arity_of(par)
    if not all_there(net, u, n, ins, now) or not room(net, u, outs[0], now):
        return False
    token = field(net, ins[0], TOKEN)
    start, last = join(net, u, n, ins, starts(net, u, outs[0]))
    if last < 0:
        return fail(net, u, MISALIGNED)
    if is_done(token) or is_bare(token):
        end = give_bare(net, u, outs[0], token, start, last)
    else:
        rows, cols, rows1, cols1 = sizes(net, n, ins)
        value1 = field(net, ins[n - 1], VALUE)
        value = result(net, par, field(net, ins[0], VALUE), value1)
        if value == NO_INDEX:
            return fail(net, u, SELECTOR)
        out_rows = result_rows(net, par, rows, rows1, value1)
        if out_rows == UNKNOWN_ROWS:
            return fail(net, u, UNKNOWN)
        if out_rows < 0 or not sizes_fit(par, rows, cols, rows1, cols1):
            return fail(net, u, SHAPE)
        out_cols = result_cols(par, cols, rows1, cols1)
        work = call_cost(net, u, par, rows, cols, rows1, cols1, out_rows, out_cols)
        for k in range(n):
            after = tail(net, u, par, work, k, False, rows, out_rows, out_cols, cols)
            last = max(last, comes(net, u, ins[k], k) + after - 1)
        end = finish(net, u, start, last, work)
        lead, drained = led(net, u, par, work, out_rows, out_cols)
        push(net, outs[0], token, value, out_rows, out_cols, leaves_led(net, u, start, end, lead, work),
             leaves_last(net, u, end) + drained)
    for k in range(n):
        pop(net, ins[k], end + 1)
    return True
