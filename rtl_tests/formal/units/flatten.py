"""Flatten: stops by SPEC's rule; what an element's closing bare stop becomes travels with the element."""

from amaranth.hdl import Mux, Signal

from step_hw.beat import BeatLayout

from ..case import Case
from ..faults import Fault
from ..harness import Harness

__all__ = ["CASES"]

LAYOUT = BeatLayout(2)


def _harness(module) -> Harness:
    unit = module.Flatten(LAYOUT)
    h = Harness(unit)
    m, i, p, lo, hi = h.m, unit.in0, unit.in0.payload, unit.cfg.lo, unit.cfg.hi
    rank = unit.cfg.rank
    h.assume("dimensions of the stream", (lo <= hi) & (hi <= rank))
    source = h.legal(0, rank)
    owed = h.owes(0, 3)
    accepted = i.valid & i.ready
    becomes = Signal(4)
    m.d.comb += becomes.eq(Mux(p.stop <= lo, p.stop, Mux(p.stop <= hi, lo, p.stop - hi + lo)))
    bare = p.empty & ~p.done
    # The last element's vector is not closed any more, and what is behind it may be a bare stop that closes it.
    unclosed = Signal()
    with m.If(accepted & ~(bare & (becomes == 0))):
        m.d.sync += unclosed.eq(~p.empty & (p.stop != 0) & (becomes == 0) & (hi != rank))
    owed.amend(accepted & bare & (becomes != 0) & unclosed, becomes, "a closing stop finds its element")
    beat = Signal(LAYOUT)
    m.d.comb += [beat.eq(p), beat.stop.eq(becomes)]
    owed.append(accepted & ~(bare & ((becomes == 0) | unclosed)), beat)
    owed.close(held=unclosed & (owed.queue.count == 1))
    made = h.grammatical(0, rank - (hi - lo))
    h.no_error()
    h.moves()
    full, open_, held = h.peek("full"), h.peek("open_"), h.peek("held", LAYOUT.size)
    h.invariant("holds at most one", owed.queue.count == full)
    h.invariant("what it holds", ~full | (held == owed.queue.stored[0].as_value()))
    h.invariant("whether it is open", ~full | (open_ == unclosed))
    h.invariant("none left open", full | ~unclosed)
    front = owed.queue.stored[0]
    h.invariant("only an element waits, and only where vectors merge", ~unclosed | (lo == 0) & made.opens(front))
    is_open = Mux(full, made.opens(front), made.open)
    h.invariant("what it holds may come", ~full | made.accepts(front))
    h.invariant("an open vector is open at the input or waits",
                ~is_open | source.open | unclosed | (rank - (hi - lo) == 0))
    h.invariant("a vector has no inside", ~made.inside | (rank - (hi - lo) != 0))
    h.invariant("inside", ~Mux(full, made.enters(front), made.inside) | source.inside)
    return h


FAULTS = (
    Fault("merged levels become 0", "stop <= hi, lo", "stop <= hi, 0"),
    Fault("levels above fall by one less", "stop - (hi - lo)", "stop - (hi - lo) + 1"),
    Fault("an open element does not wait", "o.valid.eq(full & (~open_ | i.valid & ~vanishes))", "o.valid.eq(full)"),
    Fault("a vanished stop leaves a beat", "vanishes.eq(bare & (merged == 0))", "vanishes.eq(0)"),
    Fault("a full register takes a beat", "i.ready.eq(vanishes | ~full | (o.valid & o.ready))",
          "i.ready.eq(vanishes | ~full | o.valid)"),
    Fault("the closing stop is dropped", "m.d.comb += o.payload.stop.eq(merged)", "m.d.comb += o.payload.stop.eq(0)"),
)

CASES = (Case("flatten", "step_hw.units.flatten", _harness, 12, 1, 6, FAULTS),)
