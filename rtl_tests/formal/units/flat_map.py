"""Flat map of a counter: 0 .. count - 1 for each element, its stop on the last; of none, on the one before."""

from amaranth.hdl import Mux, Signal

from step_hw.beat import BeatLayout
from step_lang import fn

from ..case import Case
from ..faults import Fault
from ..harness import Harness

__all__ = ["CASES"]

MOST = 2
"""Largest count."""


def _harness(module) -> Harness:
    unit = module.FlatMap(fn.counter(), BeatLayout(32))
    h = Harness(unit)
    m, i, p = h.m, unit.in0, unit.in0.payload
    rank = h.constant("rank", 4)
    h.legal(0, rank)
    h.assume("small counts", ~i.valid | (p.data <= MOST))
    seen, arrives = Signal(), Signal()      # what comes of a beat is known when it is at the head
    m.d.sync += seen.eq(i.valid & ~i.ready)
    m.d.comb += arrives.eq(i.valid & ~seen)

    owed = h.owes(0, MOST + 3)
    nothing = p.empty | (p.data == 0)
    unclosed = Signal()     # the last address closes no vector; the stop of an element without one may yet be its own
    closes = arrives & ~p.done & nothing & (p.stop != 0)
    owed.amend(closes & unclosed, p.stop, "a stop without an address finds the last one")
    for k in range(MOST):
        beat = Signal(unit.result, name=f"beat{k}")
        m.d.comb += [beat.data.eq(k), beat.rows.eq(1), beat.stop.eq(Mux(k + 1 == p.data, p.stop, 0))]
        owed.append(arrives & ~p.empty & (k < p.data), beat)
    bare = Signal(unit.result)
    m.d.comb += [bare.empty.eq(1), bare.done.eq(p.done), bare.stop.eq(p.stop)]
    owed.append(arrives & p.done | closes & ~unclosed, bare)
    with m.If(arrives & (~nothing | (p.stop != 0) | p.done)):
        m.d.sync += unclosed.eq(~nothing & (p.stop == 0))
    owed.close(held=unclosed & (owed.queue.count == 1))
    h.grammatical(0, rank)
    h.no_error()
    h.moves()
    return h


FAULTS = (
    Fault("one address too many", "self.last.eq(made + 1 == count)", "self.last.eq(made == count)"),
    Fault("the stop of an element without address is lost", "m.d.comb += o.payload.stop.eq(token.stop)", "pass"),
    Fault("an open address does not wait", "o.valid.eq(full & (~open_ | have & ~vanishes))", "o.valid.eq(full)"),
    Fault("an element leaves with its first address", "i.ready.eq(takes & ends)", "i.ready.eq(takes)"),
    Fault("a full register is overwritten", "takes.eq(have & (vanishes | ~full | o.valid & o.ready))",
          "takes.eq(have)"),
    Fault("an element without address leaves a beat",
          "vanishes.eq(have & token.empty & ~token.done & (token.stop == 0))", "vanishes.eq(0)"),
)

CASES = (Case("flat_map counter", "step_hw.units.flat_map", _harness, 12, None, 6, FAULTS),)
