"""What an action of an operator costs in cycles.

Two machines. **roofline**, the paper's section 4.3: the most of FLOPs over the operator's compute bandwidth and of the
bytes that it moves to or from an on-chip memory over that memory's bandwidth, at least a cycle; a tile is handed over
whole. **beats**: the hardware of a `HardwareConfig`, where a tile moves in physical tiles of T x T elements, one every
``interval`` cycles. An operator begins with the first beats of its inputs, as many as it needs of each (``NEEDS``),
after the units that lowering puts on their way (``DELAY``), and gives the first beat of its result when it has done the
part of the work that this one needs (``lead``).
"""

from ..compiled import compiled
from .network import (
    BLOCKED,
    COLS,
    EMPTY,
    FIRST,
    LAST,
    REASON,
    ROWS,
    VALUE,
    field,
    place_time,
    pop,
    push,
    record_work,
    wake,
)

__all__ = [
    "A_BEAT", "A_COLUMN", "A_PAIR", "A_ROW", "BANDWIDTH", "BY_ROWS", "COMPUTE", "COSTS", "DELAY", "INTERVAL",
    "LATENCY", "MEMORY_IN", "NEEDS", "NEEDS_ALL", "TILE", "beats", "beats_of", "ceil_div", "comes", "finish",
    "give_bare", "leaves", "leaves_last", "leaves_led", "meets", "pass_beats", "starts", "there", "whole", "work_of",
]

(COMPUTE, BANDWIDTH, MEMORY_IN, TILE, INTERVAL, LATENCY, NEEDS, NEEDS_1, DELAY, DELAY_1, BY_ROWS,
 COSTS) = range(12)
"""FLOPs/cycle; bytes/cycle of an on-chip memory; bits of the inputs that come from one;
T, 0 for a roofline machine; cycles a beat; cycles from a beat to its result; of the first input, and of the second,
what the operator needs of a tile to begin; of both, cycles from a beat on the stream to where the operator takes it;
whether beats of a fold's results are finished by rows."""

A_BEAT, A_PAIR, A_ROW, A_COLUMN, NEEDS_ALL = range(5)
"""What an operator needs of a tile to begin: its first beat; its first two, if it has two; a row or a column of beats;
all of it."""


@compiled
def ceil_div(a, b):
    """a / b, rounded up."""
    return -(-a // b)


@compiled
def beats(net, u, rows, cols):
    """Physical tiles of a tile, at least one."""
    t = net.cost[u, TILE]
    return max(1, ceil_div(rows, t) * ceil_div(cols, t))


@compiled
def beats_of(net, u, token, rows, cols):
    """Beats of a token with an element of this size; 1 where it has none, and on a roofline machine."""
    return beats(net, u, rows, cols) if net.cost[u, TILE] > 0 and token & EMPTY == 0 else 1


@compiled
def work_of(net, u, flops, nbytes, count):
    """Cycles of an action: ``nbytes`` to or from on-chip memory (roofline), ``count`` beats (beats)."""
    cost = net.cost
    net.flops[u] += flops
    if cost[u, TILE] > 0:
        return max(1, count * cost[u, INTERVAL])
    work = 1
    if flops > 0:
        work = max(work, ceil_div(flops, cost[u, COMPUTE]))
    if nbytes > 0:
        work = max(work, ceil_div(nbytes, cost[u, BANDWIDTH]))
    return work


@compiled
def starts(net, u, out):
    """The earliest that the unit may act: when it is free, and its output ``out`` has a place. That may lie before the
    present event: what tokens say of time counts, not when they were handled. What has been begun is in a pipeline
    until it leaves, and needs the place only then."""
    time = net.free[u]
    place = place_time(net, out) - net.cost[u, LATENCY] if out >= 0 else 0
    if place > time:
        net.waiting[u, REASON] = BLOCKED
        time = place
    return time


@compiled
def there(net, u, channel, k, beat):
    """When the operator may take beat ``beat`` of the token at the head of input ``k``, as far as beats come evenly."""
    first, last = field(net, channel, FIRST), field(net, channel, LAST)
    if net.cost[u, NEEDS + k] == NEEDS_ALL:
        first = last
    elif beat > 0:
        behind = beats(net, u, field(net, channel, ROWS), field(net, channel, COLS)) - 1
        first = last if beat >= behind else first + ceil_div(beat * (last - first), behind)
    return first + net.cost[u, DELAY + k]


@compiled
def meets(net, u, channel, k, time):
    """``time``, or when the operator may take as much of the token at the head of input ``k`` as it needs to begin."""
    needs, beat = net.cost[u, NEEDS + k], 0
    if needs == A_PAIR and beats(net, u, field(net, channel, ROWS), field(net, channel, COLS)) > 1:
        # One that is held leaves with the next, which takes another cycle.
        return max(time, there(net, u, channel, k, 1) - 1)
    if needs == A_ROW or needs == A_COLUMN:
        beat = ceil_div(field(net, channel, COLS if needs == A_ROW else ROWS), net.cost[u, TILE]) - 1
    return max(time, there(net, u, channel, k, beat))


@compiled
def comes(net, u, channel, k):
    """When the operator may take the last beat of the token at the head of input ``k``."""
    return field(net, channel, LAST) + net.cost[u, DELAY + k]


@compiled
def finish(net, u, start, last, work):
    """The cycle in which the unit, which began at ``start``, has taken all of what is there at ``last``; it is occupied
    until then."""
    end = max(start + work - 1, last)
    net.free[u] = end + 1
    record_work(net, u, start, end, work)
    return end


@compiled
def whole(net, u, channel, k, now):
    """Is the tile at the head of input ``k`` there as far as the operator needs it to begin? If not, it is woken."""
    if net.cost[u, NEEDS + k] != NEEDS_ALL:
        return True
    last = field(net, channel, LAST)
    if last > now:
        wake(net, u, last)
        return False
    return True


@compiled
def leaves_led(net, u, start, end, lead, work):
    """When the first beat of a result can be taken that needs ``lead`` cycles of the ``work`` done from ``start`` to
    ``end``: its share of that time, as work goes on as its inputs come."""
    if net.cost[u, TILE] > 0:
        share = ceil_div(lead * (end + 1 - start), work)
        return min(start + share, end + 1) + net.cost[u, LATENCY]
    return end + 1 + net.cost[u, LATENCY]


@compiled
def leaves(net, u, start, end):
    """The same for a result that is made beat by beat."""
    if net.cost[u, TILE] > 0:
        return min(start + net.cost[u, INTERVAL], end + 1) + net.cost[u, LATENCY]
    return end + 1 + net.cost[u, LATENCY]


@compiled
def leaves_last(net, u, end):
    """When the last beat of a result can be taken."""
    return end + 1 + net.cost[u, LATENCY]


@compiled
def give_bare(net, u, out, token, start, last):
    """Give a ``token`` without an element, the work of a cycle. Returns the cycle in which it is done, as `finish`
    does."""
    end = finish(net, u, start, last, 1)
    push(net, out, token, 0, 0, 0, end + 1, end + 1)
    return end


@compiled
def pass_beats(net, u, channel, out, token, start):
    """Hand what is at the head of ``channel`` on beat by beat as ``token``, from ``start`` on, and take it. Returns the
    cycle in which all of it is taken."""
    rows, cols = field(net, channel, ROWS), field(net, channel, COLS)
    end = finish(net, u, start, field(net, channel, LAST), work_of(net, u, 0, 0, beats_of(net, u, token, rows, cols)))
    push(net, out, token, field(net, channel, VALUE), rows, cols, leaves(net, u, start, end),
         leaves_last(net, u, end))
    pop(net, channel, end + 1)
    return end
