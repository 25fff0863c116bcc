"""Store: every element's bursts once on every channel, at the line of its position; too many and outside are errors."""

from amaranth.hdl import Cat, Mux, Signal

from step_hw.beat import BeatLayout
from step_hw.unit import ErrorCode
from step_lang.memory_config import MemoryConfig

from ..case import Case
from ..faults import Fault
from ..harness import Harness

__all__ = ["CASES"]

MEMORY = MemoryConfig(channels=2, burst_bytes=4, capacity_bytes=64)
MOST = 3
"""Largest count of positions."""


def _harness(module) -> Harness:
    """Of a store whose elements have a burst on each of two channels, to consecutive positions."""
    unit = module.Store(BeatLayout(2), memory=MEMORY, element_bytes=8)
    loops = {f"{name}{k}": 1 for name in ("count", "stride") for k in range(6)}
    loops.pop("count0")
    h = Harness(unit, loops | {"dims": 1})
    m, i, p, cfg = h.m, unit.in0, unit.in0.payload, unit.cfg
    h.legal(0, h.constant("rank", 4))
    h.assume("few positions", cfg.count0 <= MOST)
    h.assume("the tensor is at a line of the memory", (cfg.base[:3] == 0) & (cfg.base < 32))
    h.m.d.comb += unit.mem.idle.eq(h.any("idle"))
    requests = [getattr(unit.mem, f"req{c}") for c in range(MEMORY.channels)]
    for c, request in enumerate(requests):
        h.watch(f"req{c}", request)

    ended = Signal()
    h.assume("one stream a run", ~ended | ~i.valid)
    with m.If(i.valid & i.ready & p.done):
        m.d.sync += ended.eq(1)
    h.prove("finished when all is written", unit.finished == (ended & unit.mem.idle))

    stored = Signal(range(MOST + 2))
    element = i.valid & ~p.empty
    over = stored == cfg.count0
    outside = stored >= cfg.limit
    fires = Cat(r.valid & r.ready for r in requests)
    got = Signal(MEMORY.channels)
    good = element & ~over & ~outside
    error = Signal(4)
    with m.If(element & over):
        m.d.sync += error.eq(ErrorCode.OVERFLOW)
    with m.Elif(element & outside):
        m.d.sync += error.eq(ErrorCode.ADDRESS_RANGE)
    h.prove("the right error", unit.error == error)
    whole = good & (got | fires).all()
    m.d.sync += [got.eq(Mux(whole, 0, got | fires)), stored.eq(stored + whole)]
    h.prove("an element leaves when all channels have it", ~i.valid | (i.ready == Mux(p.empty, 1, whole)))
    for c, request in enumerate(requests):
        h.prove(f"channel {c} is asked once", request.valid == (good & ~got[c]))
        h.prove(f"channel {c} is told the line", ~request.valid | (request.payload.line == (cfg.base >> 3) + stored))
        h.prove(f"channel {c} sees the element", ~request.valid | (unit.mem.data == p.data))
    h.within("an element is written", good & ~whole & Cat(r.ready for r in requests).all())
    return h


_WRITING = "step_hw.hbm.writing"
FAULTS = (
    Fault("a channel is asked twice", "req.valid.eq(asked & targets[c] & ~taken[c])",
          "req.valid.eq(asked & targets[c])", _WRITING),
    Fault("accepted when one channel has it", "accept.eq(asked & (taken | took | ~targets).all())",
          "accept.eq(asked & (taken | took).any())", _WRITING),
    Fault("one element too many", "with m.If(accept & counter.last):", "with m.If(accept & counter.last & full):"),
    Fault("an element beyond the tensor is written", "(index >= unit.cfg.limit)", "(index > unit.cfg.limit)", _WRITING),
    Fault("a bare stop is written", "element.eq(i.valid & ~i.payload.empty & (error == 0))",
          "element.eq(i.valid & ~i.payload.done & (error == 0))"),
    Fault("the place does not move", "counter.step.eq(accept)", "counter.step.eq(0)"),
)

CASES = (Case("store, 2 channels", "step_hw.units.store", _harness, 16, None, 6, FAULTS),)
