"""Expand: a beat for each reference beat, with the value at the head, which leaves where the reference closes it; where
values are references to buffers, the scratchpad is told of each copy as it leaves."""

from functools import partial

from amaranth.hdl import Cat, Mux, Signal

from step_hw.beat import BeatLayout
from step_hw.unit import ErrorCode
from step_hw.units.scratchpad import ScratchpadShape

from ..case import Case
from ..faults import Fault
from ..harness import Harness

__all__ = ["CASES"]


SHAPE = ScratchpadShape(2, 1, 2, BeatLayout(1), uses_bits=4)
"""Of the references' scratchpad."""


def _harness(module, uses: int | None = None) -> Harness:
    """Of references, each with ``uses`` uses at the output, where that is given."""
    unit = module.Expand(BeatLayout(2, 2), BeatLayout(1)) if uses is None else module.Expand(
        SHAPE.reference_layout, BeatLayout(1), SHAPE, uses)
    h = Harness(unit)
    m, value, ref, o = h.m, unit.in0, unit.in1, unit.out0
    v, r, p = value.payload, ref.payload, unit.out0.payload
    rank = h.constant("rank", 4)
    h.assume("dimensions of the reference", unit.cfg.b <= rank)
    h.legal(0, rank)
    source = h.legal(1, rank)
    present, last, agree, freed = Signal(), Signal(), Signal(), Signal()
    m.d.comb += [
        present.eq(value.valid & ref.valid),
        last.eq(r.done | (r.stop >= unit.cfg.b)),
        # A value is an element of dimensions of size 1: it carries what its last reference beat carries.
        agree.eq(Mux(r.done | v.done, r.done & v.done, (r.empty | ~v.empty) & (~last | (v.stop == r.stop))
                      # Where every element has a value of its own, none may go without an element.
                      & ~((unit.cfg.b == 0) & r.empty & ~v.empty))),
    ]
    fires = o.valid & o.ready
    h.prove("offers what agrees", o.valid == (present & agree & ~freed))
    h.prove("the reference's stop", ~o.valid | (Cat(p.stop, p.empty, p.done) == Cat(r.stop, r.empty, r.done)))
    h.prove("the value's data", ~o.valid | (Cat(p.data, p.rows) == Mux(r.empty, 0, Cat(v.data, v.rows))))
    h.prove("the reference leaves with its beat", ~ref.valid | (ref.ready == fires))
    h.prove("the value leaves with its last beat", ~value.valid | (value.ready == (fires & last)))
    made = h.grammatical(0, rank)
    h.invariant("in step", made.like(source))
    error = Signal(4)
    with m.If(present & ~agree):
        m.d.sync += error.eq(ErrorCode.MISALIGNED)
    with m.Elif(present & freed):
        m.d.sync += error.eq(ErrorCode.FREED)
    h.prove("the right error", unit.error == error)
    h.moves()
    h.invariant("an error stays", (error == 0) | present & Mux(error == ErrorCode.MISALIGNED, ~agree, agree & freed))
    if uses is not None:
        _references(h, uses, freed, fires, last)
    return h


def _references(h: Harness, uses: int, freed, fires, last) -> None:
    """What the scratchpad is told: of the use that the unit holds with the value at its head become those of the copy
    that leaves, and one more while the value stays. That one keeps the buffer live."""
    m, port, value, ref = h.m, h.unit.port, h.unit.in0, h.unit.in1
    live, waiting = Signal(), Signal()
    m.d.comb += [port.live.eq(h.any("live")), freed.eq(~value.payload.empty & ~port.live)]
    m.d.sync += [live.eq(port.live), waiting.eq(value.valid & ~value.ready)]
    h.assume("a buffer in use is live, one freed is not", ~waiting | (port.live == live))
    h.prove("of the right buffer", ~port.change | (port.ref == value.payload.data))
    h.prove("told when a copy leaves, or the value without one", port.change == (
        fires & ~value.payload.empty & (last | ~ref.payload.empty)))
    h.prove("the copy's uses, and the value's", ~port.change | (
        port.uses == Mux(ref.payload.empty, 0, uses) + Mux(last, 0, 1)))


FAULTS = (
    Fault("the value leaves too early", "pops.eq(r.done | (r.stop >= b))", "pops.eq(r.done | (r.stop + 1 >= b))"),
    Fault("the value is lost with every beat", "value.ready.eq(o.valid & o.ready & pops)",
          "value.ready.eq(o.valid & o.ready)"),
    Fault("the value's stop is taken", "o.payload.stop.eq(r.stop)", "o.payload.stop.eq(v.stop)"),
    Fault("a bare stop shows data", "with m.If(~r.empty):", "with m.If(~r.done):"),
    Fault("leaves without being taken", "ref.ready.eq(o.valid & o.ready)", "ref.ready.eq(o.valid)"),
)

REFERENCE_FAULTS = (
    Fault("a bare stop makes uses", "Mux(r.empty, 0, self.uses)", "self.uses"),
    Fault("told while the copy waits", "port.change.eq(o.valid & o.ready & ", "port.change.eq(o.valid & "),
    Fault("the value's own use is over with the first copy", "self.uses) + ~pops", "self.uses)"),
    Fault("a value without a copy keeps its buffer", "~v.empty & (pops | ~r.empty)", "~v.empty & ~r.empty"),
    Fault("a bare stop inside has uses", "~v.empty & (pops | ~r.empty)", "~v.empty"),
    Fault("a freed buffer is handed on", "good &= ~freed", "good &= 1"),
)

CASES = (
    Case("expand", "step_hw.units.expand", _harness, 20, 2, 8, FAULTS),
    *(Case(f"expand of references with {uses} uses", "step_hw.units.expand", partial(_harness, uses=uses), 20, 2, 8,
           REFERENCE_FAULTS[uses == 0:]) for uses in (2, 0)),
)
