"""Model of ``step_hw/units/reshape.py``."""

from step_lang.errorcodes import ErrorCode

from ..compiled import compiled
from ..network import (
    BLOCKED,
    BUSY,
    EMPTY,
    STARVED,
    can_pop,
    can_push,
    fail,
    is_done,
    peek,
    peek_value,
    pop,
    push,
    stop_of,
    token,
    with_stop,
)

KIND = "reshape"

DIM, CHUNK, INNER1, INNER0, PADDED, PAD_ROWS, OUTPUTS, FLAG_RANK = 0, 1, 2, 3, 4, 5, 6, 7
PLACE, TAIL, END, AT1, AT0, TAKEN = 0, 1, 2, 3, 4, 5
STOP_RANGE, SHAPE, PROTOCOL = ErrorCode.STOP_RANGE, ErrorCode.SHAPE, ErrorCode.PROTOCOL


def pack(unit, graph, build):
    """Configuration ``dim, flag_rank, chunk, inner1, inner0``; parameters ``pad`` (bits or None), ``pad_rows``
    (default: all)."""
    par = build.par[unit.index]
    par[DIM] = unit.config["dim"]
    par[FLAG_RANK] = unit.config.get("flag_rank", 0)
    par[CHUNK] = unit.config["chunk"]
    par[INNER1] = unit.config.get("inner1", 1)
    par[INNER0] = unit.config.get("inner0", 1)
    par[PADDED] = unit.params.get("pad", 0) is not None
    rows = unit.params.get("pad_rows")
    par[PAD_ROWS] = graph.links[unit.outputs[0]].payload.max_rows if rows is None else rows
    par[OUTPUTS] = len(unit.outputs)


def value_inputs(unit, graph, port):
    """Elements pass; padding has the value 0, whatever it is worth. Flags are of the unit's own making."""
    if port == 1:
        return ()
    return None if unit.params.get("pad") else (0,)


@compiled
def step(u, par, st, ins, outs, net):
    """One beat (of data and of flags) a cycle, from the input or of padding."""
    present = can_pop(net, ins[0])
    if not present and st[TAIL] == 0:
        return STARVED
    tok = peek(net, ins[0]) if present else 0
    stop = stop_of(tok)
    done = is_done(tok)
    empty = tok & EMPTY != 0
    pads = st[TAIL] == 1 or (done and st[PLACE] != 0)
    filled = st[PLACE] + 1 == par[CHUNK]
    dim = par[DIM]
    last0 = st[AT0] + 1 == par[INNER0]
    last1 = st[AT1] + 1 == par[INNER1]
    ends = not done and stop > dim
    if pads:
        position = last0 and last1
    else:
        position = not done and stop >= dim and not (empty and ends and st[PLACE] == 0)
    unfinished = not pads and position and ends and not filled

    error = 0
    if st[TAIL] == 0 and stop == 15:
        error = STOP_RANGE
    elif st[TAIL] == 0 and dim == 0 and st[PLACE] != 0 and empty and not done:
        error = PROTOCOL
    elif (unfinished and (empty or par[PADDED] == 0)) or (pads and par[PADDED] == 0):
        error = SHAPE
    elif st[TAIL] == 0 and empty and not done and stop <= par[FLAG_RANK]:
        error = SHAPE
    if error != 0:
        return fail(net, u, error)

    if pads:
        if not position:
            out = 1 if last0 else 0
        elif not filled:
            out = dim
        else:
            out = st[END] if st[TAIL] == 1 else dim + 1
    elif position and not filled:
        out = dim if ends else stop
    else:
        out = stop if done or stop < dim else stop + 1
    rows = par[PAD_ROWS]
    flag = 0 if done and not pads else out - par[FLAG_RANK]  # its stop; below 0: not the last of those that share it

    moved = False
    for k in range(par[OUTPUTS]):
        if (st[TAKEN] >> k) & 1 == 0 and k == 1 and flag < 0:
            st[TAKEN] |= 1 << k
        elif (st[TAKEN] >> k) & 1 == 0 and can_push(net, outs[k]):
            if pads:
                push(net, outs[k], token(out, rows) if k == 0 else token(flag, 1), k)  # a flag of padding is 1
            elif k == 0:
                push(net, outs[k], with_stop(tok, out), peek_value(net, ins[0]))
            elif empty:
                push(net, outs[k], with_stop(tok, flag), 0)
            else:
                push(net, outs[k], token(flag, 1), 0)
            st[TAKEN] |= 1 << k
            moved = True
    if st[TAKEN] != (1 << par[OUTPUTS]) - 1:
        return BUSY if moved else BLOCKED
    st[TAKEN] = 0
    if position:
        st[PLACE] = 0 if filled else st[PLACE] + 1
    if not pads:
        if unfinished:
            st[TAIL] = 1
            st[END] = stop + 1
        pop(net, ins[0])
        return BUSY
    if last0:
        st[AT0] = 0
        st[AT1] = 0 if last1 else st[AT1] + 1
    else:
        st[AT0] += 1
    if position and filled:
        st[TAIL] = 0
    return BUSY
