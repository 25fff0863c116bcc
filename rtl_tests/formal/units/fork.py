"""Fork: every output gets every beat once, in order; the input leaves when all have."""

from functools import partial

from amaranth.hdl import Cat, Mux, Signal

from step_hw.beat import BeatLayout

from ..case import Case
from ..faults import Fault
from ..harness import Harness

__all__ = ["CASES"]

LAYOUT = BeatLayout(2)


def _harness(module, n: int) -> Harness:
    unit = module.Fork(LAYOUT, n)
    h = Harness(unit)
    i = unit.in0
    rank = h.constant("rank", 4)
    source = h.legal(0, rank)
    fires = Cat(o.valid & o.ready for o in unit.outs)
    got = Signal(n)    # outputs that have the beat at the head
    h.m.d.sync += got.eq(Mux(i.valid & ~i.ready, got | fires, 0))
    h.prove("leaves when all have it", ~i.valid | (i.ready == (got | fires).all()))
    for k, o in enumerate(unit.outs):
        h.prove(f"out{k} once", o.valid == (i.valid & ~got[k]))
        h.prove(f"out{k} the same beat", ~o.valid | (o.payload.as_value() == i.payload.as_value()))
        copy = h.grammatical(k, rank)
        h.invariant(f"out{k} follows", Mux(got[k], i.valid & copy.behind(source, i.payload), copy.like(source)))
    h.no_error()
    h.moves()
    h.invariant("taken", h.peek("taken", n) == got)
    return h


FAULTS = (
    Fault("an output gets a beat twice", "o.valid.eq(i.valid & ~taken[k])", "o.valid.eq(i.valid)"),
    Fault("accepted when one has it", "(taken | takes).all()", "(taken | takes).any()"),
    Fault("what was taken is forgotten", "taken.eq(taken | takes)", "taken.eq(takes)"),
    Fault("taken is kept for the next beat", "m.d.sync += taken.eq(0)", "m.d.sync += taken.eq(takes)"),
)

CASES = tuple(
    Case(f"fork, {n} outputs", "step_hw.units.fork", partial(_harness, n=n), 20, 1, 8, FAULTS)
    for n in (2, 3))
