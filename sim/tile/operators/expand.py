"""expand: each element for all of a reference's inner dimensions. Of references it counts the uses."""

from step_lang.errorcodes import ErrorCode
from step_lang.mapping.references import uses
from step_lang.types import BufferRef

from ...compiled import compiled
from ..cost import TILE, beats, comes, finish, leaves, leaves_last, meets, starts, whole, work_of
from ..network import (
    COLS,
    EMPTY,
    ROWS,
    TOKEN,
    VALUE,
    available,
    change_uses,
    fail,
    field,
    is_done,
    pop,
    push,
    room,
    stop_of,
)

KIND = "expand"
RANK, USES = range(2)     # USES: of a reference at the output, plus one; 0: no references
MISALIGNED = ErrorCode.MISALIGNED


def pack(op, unit, build):
    """Rank."""
    build.par[unit, RANK] = op.rank
    if isinstance(op.inputs[0].type, BufferRef):
        build.par[unit, USES] = uses(op.output) + 1


@compiled
def step(u, par, st, ins, outs, net, now):
    """One token of the reference; the value leaves with one of stop >= rank."""
    if not available(net, u, ins[1], now) or not room(net, u, outs[0], now):
        return False
    token = field(net, ins[1], TOKEN)
    bare = token & EMPTY != 0
    ends = is_done(token) or stop_of(token) >= par[RANK]
    last = comes(net, u, ins[1], 1)
    head = EMPTY
    if not bare or ends:
        if not available(net, u, ins[0], now) or not whole(net, u, ins[0], 0, now):
            return False
        head = field(net, ins[0], TOKEN)
        if ends and (head | EMPTY) != (token | EMPTY):
            return fail(net, u, MISALIGNED)
        if not bare and head & EMPTY:
            return fail(net, u, MISALIGNED)
        last = max(last, comes(net, u, ins[0], 0))
    if par[USES] != 0 and (not bare or (ends and head & EMPTY == 0)):
        change_uses(net, field(net, ins[0], VALUE), (0 if bare else par[USES] - 1) - (1 if ends else 0), now)
    rows, cols, value, count = 0, 0, 0, 1
    start = meets(net, u, ins[1], 1, starts(net, u, outs[0]))
    if not bare or ends:
        start = meets(net, u, ins[0], 0, start)
    if not bare:
        rows, cols, value = field(net, ins[0], ROWS), field(net, ins[0], COLS), field(net, ins[0], VALUE)
        if net.cost[u, TILE] > 0:
            count = beats(net, u, rows, cols)
    end = finish(net, u, start, last, work_of(net, u, 0, 0, count))
    push(net, outs[0], token, value, rows, cols, leaves(net, u, start, end), leaves_last(net, u, end))
    pop(net, ins[1], end + 1)
    if ends:
        pop(net, ins[0], end + 1)
    return True
