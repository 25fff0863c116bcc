"""scan: the state of a fold after every element. Its values are those of no control value."""

from step_lang.errorcodes import ErrorCode
from step_lang.errors import UnknownFunction

from ...compiled import compiled
from ...values import ADD, MAX, NO_OPERATION, operate, operation_of, sign_of
from ..cost import finish, leaves, leaves_last, meets, starts
from ..functions import FUNCTION_END, arity_of, call_cost, pack_function, result_cols
from ..network import (
    COLS,
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

KIND = "scan"
RANK, FOLD, FOLD_FORM, INIT = range(FUNCTION_END, FUNCTION_END + 4)
INSIDE, STATE = 0, 1
MISALIGNED = ErrorCode.MISALIGNED


def pack(op, unit, build):
    """Rank and function."""
    if op.inner:
        raise UnknownFunction(f"scan with inner={op.inner} vs inner=0 at tile fidelity", operator=op,
                              fix="give it the program before lowering")
    pack_function(op, unit, build)
    par = build.par[unit]
    types = [stream.type for stream in op.inputs]
    par[[RANK, FOLD, INIT]] = op.rank, NO_OPERATION, NO_VALUE
    if len(types) == 1 and operation_of(op.fn, [types[0], types[0]], op.output.type) in (ADD, MAX):
        par[FOLD] = operation_of(op.fn, [types[0], types[0]], op.output.type)
        par[FOLD_FORM] = sign_of(types[0].dtype)
        par[INIT] = int(op.fn.initial(op.init, *types).reshape(-1)[0]) & ((1 << abs(int(par[FOLD_FORM]))) - 1)


@compiled
def step(u, par, st, ins, outs, net, now):
    """Take one element of each input, give the state."""
    n = arity_of(par)
    ready = True
    for k in range(n):
        ready = available(net, u, ins[k], now) and ready
    if not ready or not room(net, u, outs[0], now):
        return False
    token = field(net, ins[0], TOKEN)
    last = 0
    start = starts(net, u, outs[0])
    for k in range(n):
        if field(net, ins[k], TOKEN) != token:
            return fail(net, u, MISALIGNED)
        start = meets(net, u, ins[k], k, start)
        last = max(last, field(net, ins[k], LAST))
    if is_done(token) or is_bare(token):
        end = finish(net, u, start, last, 1)
        push(net, outs[0], token, 0, 0, 0, end + 1, end + 1)
    else:
        rows, cols = field(net, ins[0], ROWS), field(net, ins[0], COLS)
        other = n - 1
        rows1, cols1 = field(net, ins[other], ROWS), field(net, ins[other], COLS)
        out_cols = result_cols(par, cols, rows1, cols1)
        end = finish(net, u, start, last, call_cost(net, u, par, rows, cols, rows1, cols1, rows, out_cols))
        value = field(net, ins[0], VALUE)
        before = st[STATE] if st[INSIDE] != 0 else par[INIT]
        if par[FOLD] == NO_OPERATION or value == NO_VALUE or before == NO_VALUE:
            st[STATE] = NO_VALUE
        else:
            st[STATE] = operate(par[FOLD], before, value, par[FOLD_FORM], par[FOLD_FORM])
        st[INSIDE] = 1
        push(net, outs[0], token, st[STATE], rows, out_cols, leaves(net, u, start, end), leaves_last(net, u, end))
    if is_done(token) or stop_of(token) >= par[RANK]:
        st[INSIDE] = 0
    for k in range(n):
        pop(net, ins[k], end + 1)
    return True
