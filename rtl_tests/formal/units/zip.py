"""Zip: beats leave in pairs when they agree; what does not agree raises the right error and nothing is accepted."""

from amaranth.hdl import Cat, Mux, Signal

from step_hw.beat import BeatLayout

from ..case import Case
from ..faults import Fault
from ..harness import Harness

__all__ = ["CASES"]


def _harness(module, layouts) -> Harness:
    unit = module.Zip(layouts)
    h = Harness(unit)
    m, ins, o = h.m, unit.ins, unit.out0
    rank = h.constant("rank", 4)
    sources = [h.legal(k, rank) for k in range(len(ins))]
    first = ins[0].payload
    height = max(layout.max_rows for layout in layouts)
    tall = [i.payload.rows for i, layout in zip(ins, layouts) if layout.max_rows == height]
    present, apart, uneven = Signal(), Signal(), Signal()
    m.d.comb += [
        present.eq(Cat(i.valid for i in ins).all()),
        apart.eq(Cat((i.payload.stop != first.stop) | (i.payload.empty != first.empty) | (i.payload.done != first.done)
                     for i in ins).any()),
        uneven.eq(Cat(rows != tall[0] for rows in tall).any()),
    ]
    h.prove("offers what agrees", o.valid == (present & ~apart & ~uneven))
    p = o.payload
    h.prove("all members, one stop", ~o.valid | (
        (p.data == Cat(i.payload.data for i in ins)) & (p.rows == tall[0])
        & (Cat(p.stop, p.empty, p.done) == Cat(first.stop, first.empty, first.done))))
    for k, i in enumerate(ins):
        h.prove(f"in{k} leaves with the tuple", ~i.valid | (i.ready == (o.valid & o.ready)))
    made = h.grammatical(0, rank)
    h.invariant("in step", Cat(made.like(source) for source in sources).all())
    expected = Signal(4)
    with m.If(present & apart):
        m.d.sync += expected.eq(1)
    with m.Elif(present & uneven):
        m.d.sync += expected.eq(5)
    h.prove("the right error", unit.error == expected)
    stuck = Signal()
    m.d.sync += stuck.eq(present & (apart | uneven))
    h.prove("no tuple after an error", ~stuck | ~o.valid)
    h.moves()
    h.invariant("error only where they stand", (expected == 0) | Mux(expected == 1, apart, uneven) & present)
    return h


FAULTS = (
    Fault("stops are not compared", "Cat(Cat(i.payload.stop, i.payload.empty, i.payload.done)",
          "Cat(Cat(first.stop, i.payload.empty, i.payload.done)"),
    Fault("one input leaves alone", "[i.ready.eq(o.valid & o.ready) for i in ins]",
          "[i.ready.eq((o.valid | (k == 1)) & o.ready) for k, i in enumerate(ins)]"),
    Fault("members swapped", "Cat(i.payload.data for i in ins)", "Cat(i.payload.data for i in reversed(ins))"),
    Fault("done is lost", "o.payload.done.eq(first.done)", "o.payload.done.eq(0)"),
)

CASES = (
    Case("zip, 2 inputs", "step_hw.units.zip", lambda module: _harness(module, [BeatLayout(2, 2)] * 2), 20, 2, 8,
         FAULTS),
    Case("zip, 3 inputs of two heights", "step_hw.units.zip",
         lambda module: _harness(module, [BeatLayout(2, 2), BeatLayout(1), BeatLayout(2, 2)]), 20, 2, 8, FAULTS),
)
