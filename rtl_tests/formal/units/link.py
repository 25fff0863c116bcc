"""Link FIFO: what goes in comes out, in order, as many as its depth at a time."""

from functools import partial

from amaranth.hdl import Array, Value

from step_hw.beat import BeatLayout

from ..case import Case
from ..faults import Fault
from ..harness import Harness

__all__ = ["CASES"]

LAYOUT = BeatLayout(2)


def _harness(module, depth: int) -> Harness:
    unit = module.LinkFIFO(LAYOUT, depth)
    h = Harness(unit)
    i, o = unit.in0, unit.out0
    owed = h.owes(0, depth + 1)
    queue = owed.queue
    h.prove("ready until full", i.ready == (queue.count < depth))
    h.prove("valid as soon as filled", o.valid == (queue.count != 0))
    owed.append(i.valid & i.ready, i.payload)
    owed.close()
    h.moves()

    head, tail, level = (h.peek(n, range(depth + (n == "level"))) for n in ("head", "tail", "level"))
    small = depth <= module.REGISTERS
    slots = Array(h.peek(f"slot{k}" if small else f"slots[{k}]", LAYOUT.size) for k in range(depth))
    h.invariant("level", (level == queue.count) & (level <= depth))
    h.invariant("pointers", (head < depth) & (tail < depth) & ((head + level == tail) | (head + level == tail + depth)))
    for k in range(depth):
        at = head + k
        h.invariant(f"slot {k}", (level <= k) | (Array([*slots, *slots])[at] == Value.cast(queue.stored[k])))
    return h


FAULTS = (
    Fault("a full link takes a beat", "w.ready.eq(level != self.depth)", "w.ready.eq(1)"),
    Fault("a beat read while one is written is lost from the count", "level.eq(level + write - read)",
          "level.eq(level - read + (write & ~read))"),
    Fault("the head skips a slot", "m.d.sync += head.eq(self._next(head))",
          "m.d.sync += head.eq(self._next(self._next(head)))"),
    Fault("valid looks at ready", "r.valid.eq(level != 0)", "r.valid.eq((level != 0) & r.ready)"),
)

CASES = tuple(
    Case(f"link, depth {depth}", "step_hw.link", partial(_harness, depth=depth), 16, 1, 6, FAULTS)
    for depth in (2, 3, 9))
