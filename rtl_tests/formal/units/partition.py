"""Partition: a chunk's beats to all outputs that its selector names, once each, and to no other; of a reference's uses
the scratchpad is told once, before an output has it."""

from functools import partial

from amaranth.hdl import Cat, Mux, Signal

from step_hw.beat import BeatLayout
from step_hw.unit import ErrorCode
from step_hw.units.scratchpad import ScratchpadShape

from ..case import Case
from ..faults import Fault
from ..harness import Harness

__all__ = ["CASES"]

LAYOUT = BeatLayout(1)
SHAPE = ScratchpadShape(2, 1, 2, LAYOUT)
"""Of the references' scratchpad."""


def _harness(module, bits: int, n: int, uses: tuple[int, ...] | None = None) -> Harness:
    """Of references where ``uses`` says how many of them each output makes."""
    unit = module.Partition(LAYOUT, bits, n) if uses is None else module.Partition(
        SHAPE.reference_layout, bits, n, SHAPE, uses)
    h = Harness(unit)
    m, data, selector, b = h.m, unit.in0, unit.in1, unit.cfg.rank
    d, s = data.payload, selector.payload
    rank = h.constant("rank", 4)
    h.assume("chunks are inside", b <= rank)
    source = h.legal(0, rank)
    h.legal(1, rank - b)
    present, last, agree, known = Signal(), Signal(), Signal(), Signal()
    to = Signal(n)
    outer = Signal(4)     # levels above the chunk that end with this beat
    m.d.comb += [
        present.eq(data.valid & selector.valid),
        last.eq(~d.done & (d.stop >= b)),
        outer.eq(d.stop - b),
        agree.eq(Mux(d.done | s.done, d.done & s.done, Mux(
            s.empty, d.empty & last & (s.stop == outer),                    # no selector: nothing but a stop
            (~last | (s.stop == outer)) & ~(d.empty & (b == 0))))),
        known.eq(s.empty | (s.data < (1 << n))),
        to.eq(Mux(d.done, (1 << n) - 1, Mux(s.empty, 0, s.data))),
    ]
    freed = Signal()      # the reference's buffer is no more
    counted = Signal()    # its uses have been told
    if uses is not None:
        m.d.comb += freed.eq(~d.empty & ~unit.port.live & ~counted)
    good = present & agree & known & ~freed
    fires = Cat(o.valid & o.ready for o in unit.outs)
    got = Signal(n)
    all_out = ((got | fires) & to) == to
    m.d.sync += got.eq(Mux(good & ~all_out, got | fires, 0))
    h.prove("a beat leaves when all have it", ~data.valid | (data.ready == (good & all_out)))
    h.prove("a selector leaves with its chunk", ~selector.valid | (
        selector.ready == (good & all_out & (last | d.done))))
    begun = Signal()
    with m.If(data.valid & data.ready):
        m.d.sync += begun.eq(~last & ~d.done)
    outs = []
    for k, o in enumerate(unit.outs):
        p = o.payload
        h.prove(f"out{k} gets what is meant for it", o.valid == (good & to[k] & ~got[k]))
        h.prove(f"out{k} has the beat", ~o.valid | (
            (Cat(p.data, p.rows, p.empty, p.done) == Cat(d.data, d.rows, d.empty, d.done))
            & (p.stop == Mux(d.stop >= b, Mux(d.done, 0, b), d.stop))))
        outs.append(h.grammatical(k, b))
    error = Signal(4)
    with m.If(present & ~agree):
        m.d.sync += error.eq(ErrorCode.MISALIGNED)
    with m.Elif(present & ~known):
        m.d.sync += error.eq(ErrorCode.SELECTOR)
    with m.Elif(present & freed):
        m.d.sync += error.eq(ErrorCode.FREED)
    h.prove("the right error", unit.error == error)
    h.moves()
    if uses is not None:
        _references(h, uses, to, got, counted, data.valid & data.ready, good & ~d.empty)
        h.invariant("told", h.peek("counted") == counted)
        h.invariant("an output has it after that", ~good | d.empty | counted | ~got.any())
    h.invariant("state", (h.peek("begun") == begun) & (h.peek("taken", n) == got))
    h.invariant("an error stays", (error == 0) | present & Mux(
        error == ErrorCode.MISALIGNED, ~agree, agree & Mux(error == ErrorCode.SELECTOR, ~known, known & freed)))
    h.invariant("a chunk has its selector", ~begun | selector.valid & ~s.empty & ~s.done & source.inside)
    h.invariant("between chunks nothing is open", begun | ~source.open | (b == 0))
    h.invariant("what is out was meant", (got & ~Mux(good, to, 0)) == 0)
    for k, out in enumerate(outs):
        part = begun & s.data[k]
        opened = part & source.open
        sent = unit.outs[k].payload
        h.invariant(f"out{k} follows", Mux(
            got[k], out.behind_states(opened, part, sent) | (b == 0) & (out.inside == out.enters(sent)),
            ((out.open == opened) | (b == 0)) & (out.inside == part)))
    return h


def _references(h: Harness, uses, to, got, counted, accepted, element) -> None:
    """What the scratchpad is told. A buffer that is live stays so while a use of it is held: by the beat that waits
    until its uses are told, then by each output that has still to take the beat, if it makes any."""
    m, port, data = h.m, h.unit.port, h.unit.in0
    waiting, live = Signal(), Signal()
    m.d.sync += [waiting.eq(data.valid & ~accepted), live.eq(port.live),
                 counted.eq(~accepted & (counted | port.change))]
    m.d.comb += port.live.eq(h.any("live"))
    held = ~counted | Cat(to[k] & ~got[k] for k, made in enumerate(uses) if made).any()
    h.assume("a buffer in use is live, one freed is not", ~waiting | Mux(live, ~held | port.live, ~port.live))
    h.prove("of the right buffer", ~port.change | (port.ref == data.payload.data))
    h.prove("uses are told once, at once", port.change == (element & ~counted))
    h.prove("as many as the outputs make", ~port.change | (
        port.uses == sum(Mux(to[k], made, 0) for k, made in enumerate(uses))))


FAULTS = (
    Fault("a beat to one output too often", "o.valid.eq(good & to[k] & ~taken[k])", "o.valid.eq(good & to[k])"),
    Fault("accepted when one has it", "goes.eq(good & (taken | takes | ~to).all())",
          "goes.eq(good & ((taken | takes).any() | ~to.any()))"),
    Fault("a selector serves one beat", "selector.ready.eq(goes & (ends | d.done))", "selector.ready.eq(goes)"),
    Fault("the outer stop goes out", "o.payload.stop.eq(Mux(ends, rank, d.stop))", "o.payload.stop.eq(d.stop)"),
    Fault("stops are not compared", "(ends & (d.stop != s.stop + rank))", "(ends & (d.stop < s.stop + rank))"),
    Fault("done to the selected only", "to.eq(Mux(d.done, (1 << self.n) - 1, ", "to.eq(Mux(0, 0, "),
    Fault("what was taken is kept", "Mux(goes, 0, taken | takes)", "Mux(goes, takes, taken | takes)"),
)

REFERENCE_FAULTS = (
    Fault("uses are told again", "port.change.eq(good & ~d.empty & ~counted)",
          "port.change.eq(good & ~d.empty)"),
    Fault("uses of the next reference are not told", "counted.eq(~goes & (counted | port.change))",
          "counted.eq(counted | port.change)"),
    Fault("uses of all outputs", "sum(Mux(to[k], uses, 0) for k, uses in enumerate(self.uses))", "sum(self.uses)"),
    Fault("a bare stop has uses", "port.change.eq(good & ~d.empty & ~counted)",
          "port.change.eq(good & ~counted)"),
    Fault("a freed buffer is handed on", "beyond & ~freed)", "beyond)"),
    Fault("a beat to one output too often", "o.valid.eq(good & to[k] & ~taken[k])", "o.valid.eq(good & to[k])"),
)

CASES = (
    Case("partition, 2 outputs", "step_hw.units.partition", partial(_harness, bits=2, n=2), 12, 2, 6, FAULTS),
    Case("partition, 3 bits to 2 outputs", "step_hw.units.partition", partial(_harness, bits=3, n=2), 12, 2, 6, (
        *FAULTS[1:],
        Fault("a bit without an output is not seen", "s.data[self.n:].any()", "s.data[self.n:self.n].any()"))),
    Case("partition of references, 2 outputs with 1 and 2 uses", "step_hw.units.partition",
         partial(_harness, bits=2, n=2, uses=(1, 2)), 10, 2, 0, REFERENCE_FAULTS),
    Case("partition of references, 2 outputs, one without uses", "step_hw.units.partition",
         partial(_harness, bits=2, n=2, uses=(1, 0)), 10, 2, 6, REFERENCE_FAULTS),
)
