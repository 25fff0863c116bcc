"""Stores: every element's bursts once on every channel, at the line of its position or of its address; what is outside
is an error; a random store acknowledges what the channels have accepted."""

from amaranth.hdl import Cat, Mux, Signal
from amaranth.lib.data import StructLayout

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


def _random_harness(module) -> Harness:
    """Of a random store whose elements have a burst on each of two channels, with acknowledgements."""
    unit = module.RandomStore(BeatLayout(3), BeatLayout(2), memory=MEMORY, element_bytes=8)
    h = Harness(unit)
    m, a, i, cfg = h.m, unit.in0, unit.in1, unit.cfg
    p, rank = a.payload, h.constant("rank", 4)
    h.assume("chunks", cfg.inner <= rank)
    h.legal(0, rank)
    h.legal(1, rank)
    h.assume("the tensor is at a line of the memory", (cfg.base[:3] == 0) & (cfg.base < 32))
    h.assume("and ends in it", cfg.limit <= 4)
    h.m.d.comb += unit.mem.idle.eq(h.any("idle"))
    requests = [getattr(unit.mem, f"req{c}") for c in range(MEMORY.channels)]
    for c, request in enumerate(requests):
        h.watch(f"req{c}", request)

    present, agree, outside, good, whole = Signal(), Signal(), Signal(), Signal(), Signal()
    fires = Cat(r.valid & r.ready for r in requests)
    got = Signal(MEMORY.channels)
    error = Signal(4)
    m.d.comb += [
        present.eq(a.valid & i.valid & (error == 0)),
        agree.eq(Cat(p.stop, p.empty, p.done) == Cat(i.payload.stop, i.payload.empty, i.payload.done)),
        outside.eq(p.data >= cfg.limit),
        good.eq(present & agree & ~p.empty & ~outside),
        whole.eq(good & (got | fires).all()),
    ]
    with m.If(present & ~agree):
        m.d.sync += error.eq(ErrorCode.MISALIGNED)
    with m.Elif(present & ~p.empty & outside):
        m.d.sync += error.eq(ErrorCode.ADDRESS_RANGE)
    m.d.sync += got.eq(Mux(whole, 0, got | fires))
    h.prove("the right error", unit.error == error)

    # Elements asked for, and of them those accepted by each channel, which has one at a time less the earlier.
    count = 5
    asked = Signal(count)
    served = [Signal(count, name=f"served{c}") for c in range(MEMORY.channels)]
    m.d.sync += asked.eq(asked + whole)
    for c, request in enumerate(requests):
        given = Signal(count, name=f"given{c}")
        accepts = h.any(f"accepts{c}")
        h.assume(f"channel {c} accepts what it was given", ~accepts | (served[c] != given))
        h.assume(f"channel {c}: counts do not wrap", ~given.all())
        m.d.comb += getattr(unit.mem, f"served{c}").eq(accepts)
        m.d.sync += [given.eq(given + fires[c]), served[c].eq(served[c] + accepts)]
        h.prove(f"channel {c} is asked once", ~request.valid | good & ~got[c])
        h.prove(f"channel {c} is told the line", ~request.valid | (request.payload.line == (cfg.base >> 3) + p.data))
        h.prove(f"channel {c} sees the element", ~request.valid | (unit.mem.data == i.payload.data))

    moves = a.valid & a.ready
    inside = Signal()       # a vector of chunks
    with m.If(moves):
        m.d.sync += inside.eq(~p.done & (p.stop <= cfg.inner))
    h.assume("no chunk is empty", ~a.valid | ~p.empty | p.done | (p.stop < cfg.inner) | (p.stop > cfg.inner) & ~inside)
    h.prove("both leave together", moves == (i.valid & i.ready))
    h.prove("an element leaves when all channels have it", ~moves | Mux(p.empty, present & agree, whole))
    h.prove("an element that all channels have leaves", ~whole | moves)
    all_served = (served[0] == asked) & (served[1] == asked)
    h.within("an element is written", good & ~whole & Cat(r.ready for r in requests).all() & all_served
             & unit.out0.ready, 4)

    # Acknowledgements: of what has been accepted, in order.
    owed = h.owes(0, unit.pending + 2, StructLayout({"beat": unit.output_layouts[0], "needs": count}))
    entry = Signal(owed.queue.layout)
    m.d.comb += [
        entry.beat.data.eq(~p.empty), entry.beat.rows.eq(~p.empty), entry.beat.empty.eq(p.empty),
        entry.beat.done.eq(p.done), entry.beat.stop.eq(Mux(p.done, 0, p.stop - cfg.inner)),
        entry.needs.eq(asked + whole),
    ]
    owed.append(moves & (p.done | (p.stop >= cfg.inner)), entry)
    accepted = Signal()
    m.d.comb += accepted.eq((served[0] >= owed.queue.front.needs) & (served[1] >= owed.queue.front.needs))
    h.grammatical(0, rank - cfg.inner)
    owed.close(held=~accepted, stall=unit.pending + 1, same=lambda sent, entry: (sent == entry.beat) & accepted)
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

RANDOM_FAULTS = (
    Fault("acknowledged when one channel has accepted", "| (served[c] != 0) for c in range(channels)).all()",
          "| (served[c] != 0) for c in range(channels)).any()"),
    Fault("acknowledged when asked", "| (served[c] != 0) for c", "| 1 for c"),
    Fault("every element is acknowledged", "closes.eq(first.empty | (first.stop >= self.cfg.inner))", "closes.eq(1)"),
    Fault("an acknowledgement leaves untaken", "leaves.eq(whole & (~closes | o.ready))", "leaves.eq(whole)"),
    Fault("acceptance is not used up", "(leaves & targets[c]))", "0)"),
    Fault("the list overflows", "room.eq(level != self.pending)", "room.eq(1)"),
    Fault("streams are not compared", "(head.empty == i.payload.empty) &", "1 &"),
    Fault("an element outside is written", "(index >= unit.cfg.limit)", "(index > unit.cfg.limit)", _WRITING),
    Fault("a channel is asked twice", "req.valid.eq(asked & targets[c] & ~taken[c])",
          "req.valid.eq(asked & targets[c])", _WRITING),
)

CASES = (
    Case("store, 2 channels", "step_hw.units.store", _harness, 16, None, 6, FAULTS),
    Case("random_store, 2 channels", "step_hw.units.random_store", _random_harness, 8, None, 5, RANDOM_FAULTS),
)
