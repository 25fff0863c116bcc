"""Promote: every beat as it is, but the last before done carries rank + 1."""

from amaranth.hdl import Mux

from step_hw.beat import BeatLayout

from ..case import Case
from ..faults import Fault
from ..harness import Harness

__all__ = ["CASES"]

LAYOUT = BeatLayout(2)


def _harness(module) -> Harness:
    unit = module.Promote(LAYOUT)
    h = Harness(unit)
    i, p, rank = unit.in0, unit.in0.payload, unit.cfg.rank
    h.assume("a level is left", rank < 15)
    grammar = h.legal(0, rank)
    owed = h.owes(0, 3)
    accepted = i.valid & i.ready
    owed.amend(accepted & p.done & grammar.begun, rank + 1, "done finds the last beat")
    owed.append(accepted, p)
    front = owed.queue.stored[0]
    owed.close(held=(owed.queue.count == 1) & ~front.done & (front.stop == rank))
    made = h.grammatical(0, rank + 1)
    h.no_error()
    h.moves()
    full, held = h.peek("full"), h.peek("held", LAYOUT.size)
    h.invariant("holds at most one", owed.queue.count == full)
    h.invariant("what it holds", ~full | (held == owed.queue.stored[0].as_value()))
    h.invariant("holds the last beat", ~grammar.begun | grammar.inside | full & ~front.done & (front.stop == rank))
    h.invariant("done is the last beat", ~full | (front.done == ~grammar.begun))
    h.invariant("legal", ~full | made.accepts(front) & (front.stop <= rank))
    h.invariant("open", Mux(full, grammar.open == made.opens(front), made.open == grammar.open))
    h.invariant("inside", Mux(full, grammar.inside == grammar.enters(front), made.inside == grammar.begun))
    return h


FAULTS = (
    Fault("the last beat does not wait", "o.valid.eq(full & (~waits | i.valid & ~bad))", "o.valid.eq(full)"),
    Fault("the last beat is not raised", "o.payload.stop.eq(rank + 1)", "o.payload.stop.eq(rank)"),
    Fault("every vector is raised", "with m.If(waits & i.payload.done):", "with m.If(waits & i.valid):"),
    Fault("a full register takes a beat", "i.ready.eq(~bad & (~full | (o.valid & o.ready)))",
          "i.ready.eq(~bad & (~full | o.valid))"),
)

CASES = (Case("promote", "step_hw.units.promote", _harness, 16, 1, 8, FAULTS),)
