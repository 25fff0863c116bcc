"""The arbiter of the routers by itself: any inputs may wait at any time, and cease to."""

from functools import partial

from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import In, Out

from step_hw.unit import Unit

from ..case import Case
from ..faults import Fault
from ..grants import rotation
from ..harness import Harness

__all__ = ["CASES"]


class _Arbiter(Unit):
    """A `ChunkArbiter` (of ``kind``) with its signals as ports."""

    def __init__(self, kind, n: int):
        self.kind_, self.n = kind, n
        index = range(max(2, n))
        super().__init__([], [], extra={
            "waiting": In(n), "finish": In(1), "clear": In(1), "locked_out": Out(1), "serving": Out(1),
            "granted": Out(1), "turn": Out(index), "chosen": Out(n)})

    def elaborate(self, platform):
        m = Module()
        arbiter = self.kind_(m, self.waiting)
        m.d.comb += [
            arbiter.finish.eq(self.finish), arbiter.clear.eq(self.clear), self.locked_out.eq(arbiter.locked),
            self.serving.eq(arbiter.serving), self.granted.eq(arbiter.granted), self.turn.eq(arbiter.turn),
            self.chosen.eq(arbiter.chosen),
        ]
        return m


def _harness(module, n: int) -> Harness:
    unit = _Arbiter(module.ChunkArbiter, n)
    h = Harness(unit)
    h.m.d.comb += [unit.waiting.eq(h.any("waiting", n)), unit.finish.eq(h.any("finish")), unit.clear.eq(h.any("clear"))]
    h.assume("finish of a chunk that is served", ~unit.finish | unit.serving)
    h.assume("the end between chunks", ~unit.clear | ~unit.serving)
    for name in ("waiting", "finish", "clear", "granted", "turn"):
        h.show(name, getattr(unit, name))
    served, whom = unit.locked_out, h.peek("current", len(unit.turn))
    h.prove("one grant at a time", unit.granted == (~served & unit.waiting.any()))
    h.prove("served until the end", unit.serving == (served | unit.granted))
    h.prove("the one served is one-hot", unit.chosen == (unit.serving << unit.turn)[:n])
    held = Signal()
    last = h.constant("holder", len(unit.turn))     # whoever holds the lock holds it to the end
    h.m.d.sync += held.eq(unit.serving & ~unit.finish & (unit.turn == last))
    h.prove("a lock is not passed on", ~held | unit.serving & (unit.turn == last))
    rotation(h, n, unit.waiting, unit.granted, unit.turn, unit.clear)
    h.invariant("holder", ~held | served & (whom == last))
    h.invariant("an input", ~served | (whom < n))
    return h


FAULTS = (
    Fault("always the lowest", "candidates.eq(later)", "candidates.eq(waiting)"),
    Fault("the search begins where it was", "first.eq(self.turn + 1)", "first.eq(self.turn)"),
    Fault("a grant while one is served", "self.granted.eq(~self.locked & waiting.any())",
          "self.granted.eq(waiting.any())"),
    Fault("a lock ends at once", "with m.If(self.finish):", "with m.If(self.locked):"),
    Fault("the last input starves", "with m.If(self.turn == n - 1):", "with m.If(self.turn == n - 2):"),
)

CASES = tuple(Case(f"arbiter, {n} inputs", "step_hw.arbiter", partial(_harness, n=n), 16, 1, 8, FAULTS) for n in (2, 4))
