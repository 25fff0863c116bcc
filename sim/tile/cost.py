"""What an action of an operator costs in cycles.

Two machines. **roofline**, the paper's section 4.3: the most of FLOPs over the operator's compute bandwidth and of the
bytes that it moves to or from an on-chip memory over that memory's bandwidth, at least a cycle; a tile is handed over
whole. **beats**: the hardware of a `HardwareConfig`, where a tile moves in physical tiles of T x T elements, one every
``interval`` cycles, and an operator that need not wait for a whole tile passes its first beat on after ``latency``.
"""

from ..compiled import compiled

__all__ = ["BANDWIDTH", "COMPUTE", "COSTS", "CUT", "INTERVAL", "LATENCY", "MEMORY_IN", "MEMORY_OUT", "TILE", "beats",
           "ceil_div", "finish", "leaves", "leaves_last", "work_of"]

COMPUTE, BANDWIDTH, MEMORY_IN, MEMORY_OUT, TILE, INTERVAL, LATENCY, CUT, COSTS = range(9)
"""FLOPs/cycle; bytes/cycle of an on-chip memory; bits of the inputs that come from one; whether the output goes to one;
T, 0 for a roofline machine; cycles a beat; cycles from a beat to its result; whether the first beat is passed on."""


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
def finish(net, u, now, last, work):
    """The cycle in which the unit, which began ``now``, has taken all of what is there at ``last``; it is occupied
    until then."""
    end = max(now + work - 1, last)
    net.free[u] = end + 1
    net.busy[u] += work
    net.fired[u] += 1
    return end


@compiled
def leaves(net, u, now, end):
    """When the first beat of a result can be taken, of what the unit took from ``now`` to ``end``."""
    if net.cost[u, CUT] != 0:
        return min(now + net.cost[u, INTERVAL], end + 1) + net.cost[u, LATENCY]
    return end + 1 + net.cost[u, LATENCY]


@compiled
def leaves_last(net, u, end):
    """When the last beat of a result can be taken."""
    return end + 1 + net.cost[u, LATENCY]
