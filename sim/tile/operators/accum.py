"""accum: fold inner dimensions."""

from step_lang.errorcodes import ErrorCode

from ...compiled import compiled
from ..cost import TILE, beats, comes, finish, give_bare, leaves, leaves_last, starts
from ..folds import FOLD_END, INIT, RANK, folded, pack_fold
from ..functions import MORE_COLS, MORE_ROWS, SIZE, arity_of, call_cost, result_cols, sizes_fit, tail
from ..joins import all_there, join, sizes
from ..network import (
    EMPTY,
    TOKEN,
    VALUE,
    announce,
    fail,
    field,
    is_bare,
    is_done,
    pop,
    push,
    room,
    stop_of,
)

KIND = "accum"
HOLLOW, INIT_ROWS, INIT_COLS, KEEPS, PASSES, PACKS = range(FOLD_END, FOLD_END + 6)
# PASSES, PACKS: in hardware beats of the elements are those of the state, and pass; rows are packed.
COUNT, STATE_ROWS, STATE_COLS, STATE, BLOCK = range(5)   # BLOCK: when the first beats of such a state left, -1 before
MISALIGNED, SHAPE = ErrorCode.MISALIGNED, ErrorCode.SHAPE


def pack(op, unit, build):
    """See `sim.tile.folds`; and the size of the state of an empty group."""
    pack_fold(op, unit, build)
    par, tile = build.par[unit], op.inputs[0].type if op.fn.grows else op.output.type
    par[[HOLLOW, KEEPS]] = op.hollow, op.fn.name == "last"
    if op.fn.grows:
        joined = getattr(tile, op.fn.along)
        par[PASSES] = joined != 1
        par[PACKS] = joined == 1 and op.fn.along == "rows"
    par[[INIT_ROWS, INIT_COLS]] = [size if isinstance(size, int) else 1 for size in (tile.rows, tile.cols)]


@compiled
def step(u, par, st, ins, outs, net, now):
    """Take one element of each input; the last of a group gives its state."""
    n = arity_of(par)
    if not all_there(net, u, n, ins, now):
        return False
    token = field(net, ins[0], TOKEN)
    start, last = join(net, u, n, ins, net.free[u])
    if last < 0:
        return fail(net, u, MISALIGNED)
    stop = stop_of(token)
    closes = is_done(token) or stop >= par[RANK]
    if closes:
        if not room(net, u, outs[0], now):
            return False
        start = max(start, starts(net, u, outs[0]))
    if is_done(token):
        end = give_bare(net, u, outs[0], token, start, last)
    elif is_bare(token):
        end = finish(net, u, start, last, 1)
    else:
        rows, cols, rows1, cols1 = sizes(net, n, ins)
        value = field(net, ins[0], VALUE)
        out_cols = result_cols(par, cols, rows1, cols1) if n == 2 or par[SIZE] != MORE_COLS else cols
        if st[COUNT] > 0 and par[KEEPS] == 0:
            same_rows = rows == st[STATE_ROWS] or par[SIZE] == MORE_ROWS
            if not same_rows or (out_cols != st[STATE_COLS] and par[SIZE] != MORE_COLS):
                return fail(net, u, SHAPE)
        if not sizes_fit(par, rows, cols, rows1, cols1):
            return fail(net, u, SHAPE)
        work = call_cost(net, u, par, rows, cols, rows1, cols1, rows, out_cols)
        for k in range(n):
            after = tail(net, u, par, work, k, True, rows, rows, out_cols, cols)
            last = max(last, comes(net, u, ins[k], k) + after - 1)
        end = finish(net, u, start, last, work)
        if st[COUNT] == 0:
            st[STATE_ROWS], st[STATE_COLS] = rows, out_cols
            st[BLOCK] = -1
            st[STATE] = par[INIT]
        else:
            if par[SIZE] == MORE_ROWS:
                st[STATE_ROWS] += rows
            elif par[SIZE] == MORE_COLS:
                st[STATE_COLS] += cols
            elif par[KEEPS] != 0:
                st[STATE_ROWS], st[STATE_COLS] = rows, cols
        st[STATE] = value if par[KEEPS] != 0 else folded(par, st[STATE], value)
        st[COUNT] += 1
        if net.cost[u, TILE] > 0 and st[BLOCK] < 0:
            if par[PASSES] != 0:
                st[BLOCK] = leaves(net, u, start, end)
            elif par[PACKS] != 0 and st[STATE_ROWS] >= net.cost[u, TILE]:
                st[BLOCK] = leaves_last(net, u, end)
            if st[BLOCK] >= 0 and not closes:
                announce(net, outs[0], max(st[BLOCK], now))
    if closes and not is_done(token):
        time = leaves_last(net, u, end)
        if st[COUNT] > 0:
            first = drained = time
            if net.cost[u, TILE] > 0:
                count = beats(net, u, st[STATE_ROWS], st[STATE_COLS])
                if par[PACKS] != 0:     # the last block leaves when it is whole
                    drained += beats(net, u, 1, st[STATE_COLS]) - 1
                elif par[PASSES] == 0:  # the state when it is complete
                    drained += count - 1
                if st[BLOCK] >= 0:
                    first = st[BLOCK]
            push(net, outs[0], stop - par[RANK], st[STATE], st[STATE_ROWS], st[STATE_COLS], first, drained)
        elif par[HOLLOW] != 0:
            push(net, outs[0], EMPTY | (stop - par[RANK]), 0, 0, 0, time, time)
        else:
            push(net, outs[0], stop - par[RANK], par[INIT], par[INIT_ROWS], par[INIT_COLS], time, time)
        st[COUNT] = 0
    for k in range(n):
        pop(net, ins[k], end + 1)
    return True
