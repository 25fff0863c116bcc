"""Model of ``step_hw/units/flatten.py``."""

from numba import njit

from ..network import BLOCKED, BUSY, STARVED, can_pop, can_push, is_bare, is_done, peek, peek_value, pop, push, stop_of, with_stop

KIND = "flatten"

LO, HI = 0, 1


def pack(unit, graph, build):
    """Parameters: lo, hi."""
    build.par[unit.index, LO] = unit.config["lo"]
    build.par[unit.index, HI] = unit.config["hi"]


@njit(inline="never")
def step(u, par, st, ins, outs, net):
    """One beat a cycle, latency 0."""
    if not can_pop(net, ins[0]):
        return STARVED
    tok = peek(net, ins[0])
    stop = stop_of(tok)
    if stop > par[HI]:
        stop -= par[HI] - par[LO]
    elif stop > par[LO]:
        stop = par[LO]
    if is_bare(tok) and not is_done(tok) and stop == 0:
        pop(net, ins[0])
        return BUSY
    if not can_push(net, outs[0]):
        return BLOCKED
    push(net, outs[0], with_stop(tok, stop), peek_value(net, ins[0]))
    pop(net, ins[0])
    return BUSY
