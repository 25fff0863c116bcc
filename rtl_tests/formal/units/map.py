"""Map: a result for every pair of elements, in order, with their stop; what is not aligned, or a selector of which not
one bit is set, is not accepted."""

from functools import partial

from amaranth.hdl import Cat, Mux, Signal

from step_hw.unit import ErrorCode
from step_lang import fn
from step_lang.types import Selector, Tile, int8, scalar, u32

from ..case import Case
from ..faults import Fault
from ..harness import Harness

__all__ = ["CASES"]


def _harness(module, rows: int, interval: int) -> Harness:
    tile = Tile(rows, 1, int8)
    unit = module.Map(fn.sub(), (tile, tile), tile, tile=rows, rows_per_cycle=rows // interval, k_per_cycle=1)
    h = Harness(unit)
    m, x, y = h.m, unit.in0, unit.in1
    a, b = x.payload, y.payload
    rank = h.constant("rank", 4)
    source = h.legal(0, rank)
    h.legal(1, rank)
    together, agree = Signal(), Signal()
    m.d.comb += [
        together.eq(x.valid & y.valid),
        agree.eq(Cat(a.stop, a.empty, a.done) == Cat(b.stop, b.empty, b.done)),
    ]
    wrong = Signal()
    with m.If(together & ~agree):
        m.d.sync += wrong.eq(1)
    h.prove("the right error", unit.error == Mux(wrong, ErrorCode.MISALIGNED, ErrorCode.NONE))
    accepted = x.valid & x.ready
    h.prove("both leave together", accepted == (y.valid & y.ready))
    h.prove("only what agrees", ~accepted | together & agree & ~wrong)
    result = Signal(unit.output_layouts[0])
    m.d.comb += result.eq(a)
    for k in range(rows):
        difference = a.data.word_select(k, 8) - b.data.word_select(k, 8)
        m.d.comb += result.data.word_select(k, 8).eq(Mux(a.empty, 0, difference[:8]))
    owed = h.owes(0, unit.timing.latency + 2)
    owed.append(accepted, result)
    owed.close()
    made = h.grammatical(0, rank)
    h.moves(stall=interval + 2)

    # One stage: what it holds is what is owed.
    queue, valid = owed.queue, h.peek("valid1")
    token = h.peek("token1", unit.input_layouts[0].size - 8 * rows + 2)   # and step, last
    front = queue.stored[0]
    whole = valid & token[-1]
    h.invariant("what it holds", (queue.count == whole) & (~whole | (unit.out0.payload.as_value() == front.as_value())))
    h.invariant("an error stays", ~wrong | together & ~agree)
    h.invariant("where the output is", Mux(whole, source.behind(made, front), made.like(source)))
    if interval > 1:
        step = h.peek("step", 1)
        h.invariant("the step of the element at the head", (step == 0) | together & agree & ~a.empty & ~wrong)
    return h


def _selector_harness(module, bits: int) -> Harness:
    """Of ``selector_index``."""
    unit = module.Map(fn.selector_index(), (Selector(bits),), scalar(u32), tile=1, rows_per_cycle=1, k_per_cycle=1)
    h = Harness(unit)
    m, i, p = h.m, unit.in0, unit.in0.payload
    rank = h.constant("rank", 4)
    source = h.legal(0, rank)
    names_one = Signal()
    index = Signal(32)
    m.d.comb += names_one.eq(sum(p.data) == 1)
    for k in range(bits):
        with m.If(p.data == 1 << k):
            m.d.comb += index.eq(k)
    refused, wrong = Signal(), Signal()
    m.d.comb += refused.eq(i.valid & ~p.empty & ~names_one)
    with m.If(refused):
        m.d.sync += wrong.eq(1)
    h.prove("the right error", unit.error == Mux(wrong, ErrorCode.SELECTOR, ErrorCode.NONE))
    accepted = i.valid & i.ready
    h.prove("a selector that does not name one output stays", ~accepted | ~refused & ~wrong)
    result = Signal(unit.output_layouts[0])
    m.d.comb += [result.data.eq(index), result.rows.eq(p.rows), result.stop.eq(p.stop), result.empty.eq(p.empty),
                 result.done.eq(p.done)]
    owed = h.owes(0, unit.timing.latency + 2)
    owed.append(accepted, result)
    owed.close()
    made = h.grammatical(0, rank)
    h.moves()

    queue, valid = owed.queue, h.peek("valid1")
    front = queue.stored[0]
    h.invariant("what it holds", (queue.count == valid) & (~valid | (
        unit.out0.payload.as_value() == front.as_value())))
    h.invariant("an error stays", ~wrong | refused)
    h.invariant("where the output is", Mux(valid, source.behind(made, front), made.like(source)))
    return h


FAULTS = (
    Fault("one input leaves alone", "m.d.comb += [i.ready.eq(valid & en & token.last) for i in ins]",
          "m.d.comb += [i.ready.eq((valid | (i is ins[1])) & en & token.last) for i in ins]", "step_hw.compute"),
    Fault("stops are not compared", "((other.payload.stop == head.stop) & (other", "((other", "step_hw.compute"),
    Fault("the pipeline moves on while the output waits", "en.eq(~o.valid | o.ready)", "en.eq(1)"),
    Fault("a bare stop shows data", " & (~last.empty).replicate(len(result))", ""),
    Fault("done becomes a bare beat", "o.payload.done.eq(last.done)", "o.payload.done.eq(0)"),
    Fault("the stop of the next beat", "o.payload.stop.eq(last.stop)", "o.payload.stop.eq(token.stop)"),
)

_INDEX = "step_hw.functions.selector_index"
SELECTOR_FAULTS = (
    Fault("two bits are taken", "(selector == 0) | (selector & (selector - 1)).any()", "selector == 0", _INDEX),
    Fault("no bit is taken", "(selector == 0) | (selector & (selector - 1)).any()", "(selector & (selector - 1)).any()",
          _INDEX),
    Fault("a bit of the index is lost", "if k >> b & 1)", "if k >> b & 1 and k != 2)", _INDEX),
    Fault("the index of the next beat", "with m.If(self.en):", "with m.If(1):", _INDEX),
    Fault("a bare stop is refused", "~head.empty & wrong", "wrong", "step_hw.compute"),
    *(f for f in FAULTS if f.what in ("the pipeline moves on while the output waits", "done becomes a bare beat",
                                      "the stop of the next beat")),
)

CASES = (
    Case("map, 2 inputs", "step_hw.units.map", partial(_harness, rows=1, interval=1), 12, 2, 6,
         # (Nothing minus nothing is nothing.)
         tuple(f for f in FAULTS if "bare stop shows" not in f.what)),
    Case("map, 2 inputs, 2 steps an element", "step_hw.units.map", partial(_harness, rows=2, interval=2), 12, None, 6,
         FAULTS),
    Case("map selector_index, 3 bits", "step_hw.units.map", partial(_selector_harness, bits=3), 12, 2, 6,
         SELECTOR_FAULTS),
)
