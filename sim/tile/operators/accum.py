"""accum: fold inner dimensions."""

from step_lang.errorcodes import ErrorCode
from step_lang.errors import UnknownFunction

from ...compiled import compiled
from ...values import ADD, MAX, NO_OPERATION, operate, operation_of, sign_of
from ..cost import BUFFER_LATENCY, RELAID, TILE, beats, finish, leaves_last, leaves_led, meets, starts, whole
from ..functions import (
    FUNCTION_END,
    MORE_COLS,
    MORE_ROWS,
    SIZE,
    arity_of,
    call_cost,
    lead,
    pack_function,
    result_cols,
    tail,
)
from ..network import (
    COLS,
    EMPTY,
    LAST,
    NO_VALUE,
    ROWS,
    TOKEN,
    VALUE,
    announce,
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

KIND = "accum"
RANK, HOLLOW, FOLD, FOLD_FORM, INIT, INIT_ROWS, INIT_COLS, KEEPS = range(FUNCTION_END, FUNCTION_END + 8)
COUNT, STATE_ROWS, STATE_COLS, STATE, BLOCK = range(5)   # BLOCK: when the first T packed rows left
MISALIGNED = ErrorCode.MISALIGNED


def pack(op, unit, build):
    """Rank, function, and size and value of the state of an empty group."""
    if op.inner:
        raise UnknownFunction(f"accum with inner={op.inner} vs inner=0 at tile fidelity", operator=op,
                              fix="give it the program before lowering")
    pack_function(op, unit, build)
    par = build.par[unit]
    par[[RANK, HOLLOW]] = op.rank, op.hollow
    types = [stream.type for stream in op.inputs]
    par[FOLD] = NO_OPERATION
    if len(types) == 1 and operation_of(op.fn, [types[0], types[0]], op.output.type) in (ADD, MAX):
        par[FOLD] = operation_of(op.fn, [types[0], types[0]], op.output.type)
        par[FOLD_FORM] = sign_of(types[0].dtype)
    par[KEEPS] = op.fn.name == "last"
    par[INIT] = NO_VALUE
    if par[FOLD] != NO_OPERATION:
        par[INIT] = int(op.fn.initial(op.init, *types).reshape(-1)[0]) & ((1 << abs(int(par[FOLD_FORM]))) - 1)
    tile = op.output.type if not op.fn.grows else types[0]
    par[[INIT_ROWS, INIT_COLS]] = [size if isinstance(size, int) else 1 for size in (tile.rows, tile.cols)]


@compiled
def step(u, par, st, ins, outs, net, now):
    """Take one element of each input; the last of a group gives its state."""
    n = arity_of(par)
    ready = True
    for k in range(n):
        ready = available(net, u, ins[k], now) and whole(net, u, ins[k], k, now) and ready
    if not ready:
        return False
    token = field(net, ins[0], TOKEN)
    last = 0
    start = net.free[u]
    for k in range(n):
        if field(net, ins[k], TOKEN) != token:
            return fail(net, u, MISALIGNED)
        start = meets(net, u, ins[k], k, start)
        last = max(last, field(net, ins[k], LAST))
    stop = stop_of(token)
    closes = is_done(token) or stop >= par[RANK]
    if closes:
        if not room(net, u, outs[0], now):
            return False
        start = max(start, starts(net, u, outs[0]))
    first = start
    if is_done(token):
        end = finish(net, u, start, last, 1)
        push(net, outs[0], token, 0, 0, 0, end + 1, end + 1)
    elif is_bare(token):
        end = finish(net, u, start, last, 1)
        first = end + 1
    else:
        rows, cols = field(net, ins[0], ROWS), field(net, ins[0], COLS)
        other = n - 1
        rows1, cols1 = field(net, ins[other], ROWS), field(net, ins[other], COLS)
        value = field(net, ins[0], VALUE)
        out_cols = result_cols(par, cols, rows1, cols1) if n == 2 or par[SIZE] != MORE_COLS else cols
        work = call_cost(net, u, par, rows, cols, rows1, cols1, rows, out_cols)
        for k in range(n):
            after = tail(net, u, par, work, k, True, rows, rows, out_cols, cols)
            last = max(last, field(net, ins[k], LAST) + after - 1)
        end = finish(net, u, start, last, work)
        first = leaves_led(net, u, start, end, lead(net, u, par, work, True, rows, rows, out_cols), work)
        if st[COUNT] == 0:
            st[STATE_ROWS], st[STATE_COLS] = rows, out_cols
            st[BLOCK] = -1
            st[STATE] = value if par[FOLD] != NO_OPERATION or par[KEEPS] != 0 else NO_VALUE
            if par[FOLD] != NO_OPERATION and value != NO_VALUE:
                st[STATE] = operate(par[FOLD], par[INIT], value, par[FOLD_FORM], par[FOLD_FORM])
        else:
            if par[SIZE] == MORE_ROWS:
                st[STATE_ROWS] += rows
                if net.cost[u, TILE] > 0 and st[STATE_ROWS] - rows < net.cost[u, TILE] <= st[STATE_ROWS]:
                    st[BLOCK] = first
                    if not closes and net.cost[u, RELAID] == 0:
                        announce(net, outs[0], max(first, now))
            elif par[SIZE] == MORE_COLS:
                st[STATE_COLS] += cols
            elif par[KEEPS] != 0:
                st[STATE_ROWS], st[STATE_COLS] = rows, cols
                st[STATE] = value
            if par[FOLD] != NO_OPERATION and st[STATE] != NO_VALUE:
                st[STATE] = NO_VALUE if value == NO_VALUE else operate(
                    par[FOLD], st[STATE], value, par[FOLD_FORM], par[FOLD_FORM])
        st[COUNT] += 1
    if closes and not is_done(token):
        time = leaves_last(net, u, end)
        if st[COUNT] > 0:
            drained = time
            if st[BLOCK] >= 0:
                first = st[BLOCK]
            if net.cost[u, TILE] > 0:
                count = beats(net, u, st[STATE_ROWS], st[STATE_COLS])
                if par[SIZE] == MORE_ROWS:  # the last block leaves when it is whole
                    time += beats(net, u, 1, st[STATE_COLS])
                drained = max(time, first + count - 1)
                if net.cost[u, RELAID] != 0:
                    first = drained + BUFFER_LATENCY
                    drained = first + count - 1
            push(net, outs[0], stop - par[RANK], st[STATE], st[STATE_ROWS], st[STATE_COLS], min(first, drained),
                 drained)
        elif par[HOLLOW] != 0:
            push(net, outs[0], EMPTY | (stop - par[RANK]), 0, 0, 0, time, time)
        else:
            push(net, outs[0], stop - par[RANK], par[INIT], par[INIT_ROWS], par[INIT_COLS], time, time)
        st[COUNT] = 0
    for k in range(n):
        pop(net, ins[k], end + 1)
    return True
