"""scan: the state of a fold after every element."""

from step_lang.errorcodes import ErrorCode

from ...compiled import compiled
from ..cost import finish, give_bare, leaves, leaves_last, starts
from ..folds import FOLD_END, INIT, RANK, folded, pack_fold
from ..functions import arity_of, call_cost, result_cols, sizes_fit
from ..joins import all_there, join, sizes
from ..network import TOKEN, VALUE, fail, field, is_bare, is_done, pop, push, room, stop_of

KIND = "scan"
KEEPS = FOLD_END
INSIDE, STATE, STATE_ROWS, STATE_COLS = range(4)
MISALIGNED, SHAPE = ErrorCode.MISALIGNED, ErrorCode.SHAPE


def pack(op, unit, build):
    """See `sim.tile.folds`."""
    pack_fold(op, unit, build)
    build.par[unit, KEEPS] = op.fn.name == "last"


@compiled
def step(u, par, st, ins, outs, net, now):
    """Take one element of each input, give the state."""
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
        out_cols = result_cols(par, cols, rows1, cols1)
        if st[INSIDE] != 0 and par[KEEPS] == 0 and (rows != st[STATE_ROWS] or out_cols != st[STATE_COLS]):
            return fail(net, u, SHAPE)
        if not sizes_fit(par, rows, cols, rows1, cols1):
            return fail(net, u, SHAPE)
        st[STATE_ROWS], st[STATE_COLS] = rows, out_cols
        end = finish(net, u, start, last, call_cost(net, u, par, rows, cols, rows1, cols1, rows, out_cols))
        value = field(net, ins[0], VALUE)
        st[STATE] = folded(par, st[STATE] if st[INSIDE] != 0 else par[INIT], value)
        st[INSIDE] = 1
        push(net, outs[0], token, st[STATE], rows, out_cols, leaves(net, u, start, end), leaves_last(net, u, end))
    if is_done(token) or stop_of(token) >= par[RANK]:
        st[INSIDE] = 0
    for k in range(n):
        pop(net, ins[k], end + 1)
    return True
