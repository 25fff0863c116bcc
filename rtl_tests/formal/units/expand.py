"""Expand: a beat for each reference beat, with the value at the head, which leaves where the reference closes it."""

from amaranth.hdl import Cat, Mux, Signal

from step_hw.beat import BeatLayout

from ..case import Case
from ..faults import Fault
from ..harness import Harness

__all__ = ["CASES"]


def _harness(module) -> Harness:
    unit = module.Expand(BeatLayout(2, 2), BeatLayout(1))
    h = Harness(unit)
    m, value, ref, o = h.m, unit.in0, unit.in1, unit.out0
    v, r, p = value.payload, ref.payload, unit.out0.payload
    rank = h.constant("rank", 4)
    h.assume("dimensions of the reference", unit.cfg.b <= rank)
    h.legal(0, rank)
    source = h.legal(1, rank)
    present, last, agree = Signal(), Signal(), Signal()
    m.d.comb += [
        present.eq(value.valid & ref.valid),
        last.eq(r.done | (r.stop >= unit.cfg.b)),
        # A value is an element of dimensions of size 1: it carries what its last reference beat carries.
        agree.eq(Mux(r.done | v.done, r.done & v.done, (r.empty | ~v.empty) & (~last | (v.stop == r.stop))
                      # Where every element has a value of its own, none may go without an element.
                      & ~((unit.cfg.b == 0) & r.empty & ~v.empty))),
    ]
    fires = o.valid & o.ready
    h.prove("offers what agrees", o.valid == (present & agree))
    h.prove("the reference's stop", ~o.valid | (Cat(p.stop, p.empty, p.done) == Cat(r.stop, r.empty, r.done)))
    h.prove("the value's data", ~o.valid | (Cat(p.data, p.rows) == Mux(r.empty, 0, Cat(v.data, v.rows))))
    h.prove("the reference leaves with its beat", ~ref.valid | (ref.ready == fires))
    h.prove("the value leaves with its last beat", ~value.valid | (value.ready == (fires & last)))
    made = h.grammatical(0, rank)
    h.invariant("in step", made.like(source))
    wrong = Signal()
    with m.If(present & ~agree):
        m.d.sync += wrong.eq(1)
    h.prove("the right error", unit.error == wrong)
    h.moves()
    h.invariant("an error stays", ~wrong | present & ~agree)
    return h


FAULTS = (
    Fault("the value leaves too early", "pops.eq(r.done | (r.stop >= b))", "pops.eq(r.done | (r.stop + 1 >= b))"),
    Fault("the value is lost with every beat", "value.ready.eq(o.valid & o.ready & pops)",
          "value.ready.eq(o.valid & o.ready)"),
    Fault("the value's stop is taken", "o.payload.stop.eq(r.stop)", "o.payload.stop.eq(v.stop)"),
    Fault("a bare stop shows data", "with m.If(~r.empty):", "with m.If(~r.done):"),
    Fault("leaves without being taken", "ref.ready.eq(o.valid & o.ready)", "ref.ready.eq(o.valid)"),
)

CASES = (Case("expand", "step_hw.units.expand", _harness, 20, 2, 8, FAULTS),)
