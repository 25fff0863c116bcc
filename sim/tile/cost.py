"""What an action of an operator costs in cycles.

Two machines. **roofline**, the paper's section 4.3: the most of FLOPs over the operator's compute bandwidth and of the
bytes that it moves to or from an on-chip memory over that memory's bandwidth, at least a cycle; a tile is handed over
whole. **beats**: the hardware of a `HardwareConfig`, where a tile moves in physical tiles of T x T elements, one every
``interval`` cycles. An operator begins with the first beats of its inputs, but for those that lowering buffers whole,
and gives the first beat of its result when it has done the part of the work that this one needs (``lead``).
"""

from ..compiled import compiled
from .network import BLOCKED, FIRST, LAST, REASON, field, place_time, record_work, wake

__all__ = [
    "BANDWIDTH", "BUFFER_LATENCY", "COMPUTE", "COSTS", "INTERVAL", "LATENCY", "MEMORY_IN", "RELAID",
    "TILE", "WHOLE", "beats", "ceil_div", "finish", "leaves", "leaves_last", "leaves_led", "meets", "starts",
    "whole", "work_of",
]

COMPUTE, BANDWIDTH, MEMORY_IN, TILE, INTERVAL, LATENCY, WHOLE, RELAID, COSTS = range(9)
"""FLOPs/cycle; bytes/cycle of an on-chip memory; bits of the inputs that come from one;
T, 0 for a roofline machine; cycles a beat; cycles from a beat to its result; bits of the inputs that are buffered whole
before they are used; whether the result is buffered whole, to leave in another order."""


BUFFER_LATENCY = 7
"""Cycles from the last element written to a buffer to the first read."""


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
    present event: what tokens say of time counts, not when they were handled."""
    time = net.free[u]
    if out >= 0 and place_time(net, out) > time:
        net.waiting[u, REASON] = BLOCKED
        time = place_time(net, out)
    return time


@compiled
def meets(net, u, channel, k, time):
    """``time``, or when the token at the head of input ``k`` is there, as far as the operator needs it to begin."""
    which = LAST if (net.cost[u, WHOLE] >> k) & 1 == 1 else FIRST
    return max(time, field(net, channel, which))


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
    if (net.cost[u, WHOLE] >> k) & 1 == 0:
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
