"""Repeat: n copies of every element, the last with a stop one higher; bare stops one higher."""

from amaranth.hdl import Mux, Signal

from step_hw.beat import BeatLayout

from ..case import Case
from ..faults import Fault
from ..harness import Harness

__all__ = ["CASES"]

LAYOUT = BeatLayout(2)


def _harness(module) -> Harness:
    unit = module.Repeat(LAYOUT)
    h = Harness(unit)
    m, i, o, p = h.m, unit.in0, unit.out0, unit.in0.payload
    rank = h.constant("rank", 4)
    source = h.legal(0, rank)
    h.assume("a level is left", rank < 15)
    h.assume("n", unit.cfg.n != 0)
    left = Signal(32, init=0)    # copies of this element after the one offered; known when the first has been offered
    begun = Signal()
    more = Mux(begun, left, Mux(p.empty, 0, unit.cfg.n - 1))
    fires = o.valid & o.ready
    with m.If(fires):
        m.d.sync += [begun.eq(more != 0), left.eq(more - 1)]
    h.prove("offers what is there", o.valid == i.valid)
    h.prove("leaves with its last copy", ~i.valid | (i.ready == (fires & (more == 0))))
    h.prove("copies", ~o.valid | (o.payload.data == p.data) & (o.payload.rows == p.rows) & (o.payload.empty == p.empty)
            & (o.payload.done == p.done))
    h.prove("stop of the last", ~o.valid | p.done | (o.payload.stop == Mux(more == 0, p.stop + 1, 0)))
    made_stream = h.grammatical(0, rank + 1)
    h.invariant("in step", (made_stream.open == begun) & (made_stream.inside == (begun | source.inside)))
    h.no_error()
    h.moves()
    made = h.peek("made", 32)
    h.invariant("copies made", Mux(
        begun, (made + left + 1 == unit.cfg.n) & (made != 0) & (made < unit.cfg.n), made == 0))
    h.invariant("only of an element", ~begun | i.valid & ~p.empty)
    return h


FAULTS = (
    Fault("one copy too many", "(made + 1 == self.cfg.n)", "(made == self.cfg.n)"),
    Fault("the last copy closes nothing", "o.payload.stop.eq(i.payload.stop + 1)", "o.payload.stop.eq(i.payload.stop)"),
    Fault("leaves before its last copy", "i.ready.eq(o.ready & last & ~bad)", "i.ready.eq(o.ready & ~bad)"),
    Fault("a bare stop is repeated", "last.eq(i.payload.empty | (",
          "last.eq((i.payload.empty & ~i.payload.stop[0]) | ("),
    Fault("counts while it waits", "with m.If(o.valid & o.ready):", "with m.If(o.valid):"),
)

CASES = (Case("repeat", "step_hw.units.repeat", _harness, 12, 1, 6, FAULTS),)
