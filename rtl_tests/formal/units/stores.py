"""Stores: every element's bursts once on every channel, at the line of its position or of its address; what is outside
is an error; a random store acknowledges what the channels have accepted."""

from functools import partial

from amaranth.hdl import Cat, Mux, Shape, Signal, Value, unsigned
from amaranth.lib.data import ArrayLayout, StructLayout

from step_hw.beat import BeatLayout
from step_hw.hbm.affine import LOOPS
from step_hw.unit import ErrorCode

from ..case import Case
from ..faults import Fault
from ..harness import Harness
from ..tensors import LOOPS_GO_ON, MEMORY, assume_base

__all__ = ["CASES"]

MOST = 3
"""Largest count of positions."""


def _harness(module, element_bytes: int = 8, dims: int = 1) -> Harness:
    """Of a store to a view of ``dims`` loops: one of consecutive positions, or two of any strides. Elements of 8 bytes
    have a burst on each of two channels."""
    unit = module.Store(BeatLayout(2), memory=MEMORY, element_bytes=element_bytes)
    loops: dict[str, int | Shape] = {f"{name}{k}": 1 for name in ("count", "stride") for k in range(LOOPS)}
    if dims == 1:
        loops.pop("count0")
    else:
        loops |= {f"{name}{k}": unsigned(2) for name in ("count", "stride") for k in range(dims)}
    h = Harness(unit, loops | {"dims": dims})
    m, i, p, cfg = h.m, unit.in0, unit.in0.payload, unit.cfg
    h.legal(0, h.constant("rank", 4))
    h.assume("few positions", cfg.count0 <= MOST)
    assume_base(h)
    requests = _requests(h)

    ended = Signal()
    h.assume("one stream a run", ~ended | ~i.valid)
    with m.If(i.valid & i.ready & p.done):
        m.d.sync += ended.eq(1)
    h.prove("finished when all is written", unit.finished == (ended & unit.mem.idle))

    stored = Signal(range(MOST + 2))
    element = i.valid & ~p.empty
    if dims == 1:
        index = stored
        over = stored == cfg.count0
    else:
        h.assume("and ends in it", cfg.limit <= 4)
        index, over = _place(h, element)
    outside = index >= cfg.limit
    targets = Signal(MEMORY.channels)
    m.d.comb += targets.eq(_channels(unit, index))
    fires = Cat(r.valid & r.ready for r in requests)
    got = Signal(MEMORY.channels)
    good = element & ~over & ~outside
    error = Signal(4)
    with m.If(element & over):
        m.d.sync += error.eq(ErrorCode.OVERFLOW)
    with m.Elif(element & outside):
        m.d.sync += error.eq(ErrorCode.ADDRESS_RANGE)
    h.prove("the right error", unit.error == error)
    whole = good & (got | fires | ~targets).all()
    m.d.sync += [got.eq(Mux(whole, 0, got | fires)), stored.eq(stored + whole)]
    h.prove("an element leaves when all channels have it", ~i.valid | (i.ready == Mux(p.empty, 1, whole)))
    for c, request in enumerate(requests):
        h.prove(f"channel {c} is asked once", request.valid == (good & targets[c] & ~got[c]))
        h.prove(f"channel {c} is told the line", ~request.valid | _is_at(unit, request, index))
        h.prove(f"channel {c} sees the element", ~request.valid | (unit.mem.data == p.data))
    h.within("an element is written", good & ~whole & Cat(r.ready for r in requests).all())
    return h


def _requests(h: Harness) -> list:
    """The requests to the channels, of a memory that is idle when it likes."""
    unit = h.unit
    h.m.d.comb += unit.mem.idle.eq(h.any("idle"))
    requests = [getattr(unit.mem, f"req{c}") for c in range(MEMORY.channels)]
    for c, request in enumerate(requests):
        h.watch(f"req{c}", request)
    return requests


def _place(h: Harness, element) -> tuple[Value, Value]:
    """Where the next element goes in a view of two loops, and whether the view is full."""
    m, cfg, i = h.m, h.unit.cfg, h.unit.in0
    at0, at1, full = Signal(2), Signal(2), Signal()
    with m.If(element & i.ready):
        m.d.sync += at0.eq(at0 + 1)
        with m.If(at0 + 1 == cfg.count0):
            m.d.sync += [at0.eq(0), at1.eq(at1 + 1), full.eq(at1 + 1 == cfg.count1)]
    return at0 * cfg.stride0[:2] + at1 * cfg.stride1[:2], full | (cfg.count0 == 0) | (cfg.count1 == 0)


def _channels(unit, index) -> Value:
    """Those on which an element has bytes, a bit each."""
    size = unit.port.elements.element_bytes
    first = index * size >> 2       # burst, counted from the tensor's first
    return Cat((c >= first[0]) & (c < first[0] + max(1, size // MEMORY.burst_bytes)) for c in range(MEMORY.channels))


def _is_at(unit, request, index) -> Value:
    """``request`` says where element ``index`` is."""
    elements, payload = unit.port.elements, request.payload
    at = unit.cfg.base + index * elements.element_bytes
    line = payload.line == at >> 3
    if elements.per_burst > 1:
        line &= payload.position == at[:2] // elements.element_bytes
    return line


def _random_harness(module, element_bytes: int = 8) -> Harness:
    """Of a random store with acknowledgements. Elements of 8 bytes have a burst on each of two channels."""
    unit = module.RandomStore(BeatLayout(3), BeatLayout(2), memory=MEMORY, element_bytes=element_bytes)
    h = Harness(unit)
    m, a, i, cfg = h.m, unit.in0, unit.in1, unit.cfg
    p, rank = a.payload, h.constant("rank", 4)
    h.assume("chunks", cfg.inner <= rank)
    h.legal(0, rank)
    h.legal(1, rank)
    assume_base(h)
    h.assume("and ends in it", cfg.limit <= min(8, 32 // element_bytes))
    requests = _requests(h)

    present, agree, outside, good, whole = Signal(), Signal(), Signal(), Signal(), Signal()
    fires = Cat(r.valid & r.ready for r in requests)
    got = Signal(MEMORY.channels)
    targets = Signal(MEMORY.channels)
    error = Signal(4)
    m.d.comb += [
        present.eq(a.valid & i.valid & (error == 0)),
        agree.eq(Cat(p.stop, p.empty, p.done) == Cat(i.payload.stop, i.payload.empty, i.payload.done)),
        outside.eq(p.data >= cfg.limit),
        good.eq(present & agree & ~p.empty & ~outside),
        targets.eq(_channels(unit, p.data)),
        whole.eq(good & (got | fires | ~targets).all()),
    ]
    with m.If(present & ~agree):
        m.d.sync += error.eq(ErrorCode.MISALIGNED)
    with m.Elif(present & ~p.empty & outside):
        m.d.sync += error.eq(ErrorCode.ADDRESS_RANGE)
    m.d.sync += got.eq(Mux(whole, 0, got | fires))
    h.prove("the right error", unit.error == error)

    # Elements asked for of each channel, and of them those accepted by it, which has one at a time less the earlier.
    count = 5
    asked = [Signal(count, name=f"asked{c}") for c in range(MEMORY.channels)]
    served = [Signal(count, name=f"served{c}") for c in range(MEMORY.channels)]
    m.d.sync += [number.eq(number + (whole & targets[c])) for c, number in enumerate(asked)]
    for c, request in enumerate(requests):
        given = Signal(count, name=f"given{c}")
        accepts = h.any(f"accepts{c}")
        h.assume(f"channel {c} accepts what it was given", ~accepts | (served[c] != given))
        h.assume(f"channel {c}: counts do not wrap", ~given.all())
        m.d.comb += getattr(unit.mem, f"served{c}").eq(accepts)
        m.d.sync += [given.eq(given + fires[c]), served[c].eq(served[c] + accepts)]
        h.prove(f"channel {c} is asked once", ~request.valid | good & targets[c] & ~got[c])
        h.prove(f"channel {c} is told the line", ~request.valid | _is_at(unit, request, p.data))
        h.prove(f"channel {c} sees the element", ~request.valid | (unit.mem.data == i.payload.data))

    moves = a.valid & a.ready
    inside = Signal()       # a vector of chunks
    with m.If(moves):
        m.d.sync += inside.eq(~p.done & (p.stop <= cfg.inner))
    h.assume("no chunk is empty", ~a.valid | ~p.empty | p.done | (p.stop < cfg.inner) | (p.stop > cfg.inner) & ~inside)
    h.prove("both leave together", moves == (i.valid & i.ready))
    h.prove("an element leaves when all channels have it", ~moves | Mux(p.empty, present & agree, whole))
    h.prove("an element that all channels have leaves", ~whole | moves)
    all_served = Cat(done == number for done, number in zip(served, asked)).all()
    h.within("an element is written", good & ~whole & Cat(r.ready for r in requests).all() & all_served
             & unit.out0.ready, 4)

    # Acknowledgements: of what has been accepted, in order.
    owed = h.owes(0, unit.pending + 2, StructLayout({"beat": unit.output_layouts[0], "needs": ArrayLayout(count, 2)}))
    entry = Signal(owed.queue.layout)
    m.d.comb += [
        entry.beat.data.eq(~p.empty), entry.beat.rows.eq(~p.empty), entry.beat.empty.eq(p.empty),
        entry.beat.done.eq(p.done), entry.beat.stop.eq(Mux(p.done, 0, p.stop - cfg.inner)),
        *(needs.eq(number + (whole & targets[c])) for c, (needs, number) in enumerate(zip(entry.needs, asked))),
    ]
    owed.append(moves & (p.done | (p.stop >= cfg.inner)), entry)
    accepted = Signal()
    m.d.comb += accepted.eq(Cat(done >= needs for done, needs in zip(served, owed.queue.front.needs)).all())
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
    FAULTS[0],
)

VIEW_FAULTS = (
    LOOPS_GO_ON,
    Fault("an empty vector has a place", "full | counter.barren | counter.hollow", "full | counter.barren"),
    Fault("an empty view has a place", "full | counter.barren | counter.hollow", "full | counter.hollow"),
    *FAULTS[2:4], FAULTS[5],
)
GROUP_FAULTS = (
    Fault("every channel is asked", "targets.eq(written_channels(unit.port, group))",
          "targets.eq((1 << memory.channels) - 1)", _WRITING),
    Fault("the line is the element's number", "(index >> (group_bits + share_bits)) * bursts", "index * bursts",
          _WRITING),
    Fault("the place in the burst is the first", "req.payload.position.eq(index[:share_bits])",
          "req.payload.position.eq(0)", _WRITING),
)
_OVERLAP = Fault("elements overlap", "(index >> (group_bits + share_bits)) * bursts",
                 "(index >> (group_bits + share_bits))", _WRITING)
_GROUP = Fault("acceptance of the wrong channel is used up", "(leaves & targets[c]))", "leaves)")

CASES = (
    Case("store, 2 channels", "step_hw.units.store", _harness, 16, None, 6, FAULTS),
    Case("random_store, 2 channels", "step_hw.units.random_store", _random_harness, 8, None, 5, RANDOM_FAULTS),
    Case("store, a view of 2 loops", "step_hw.units.store", partial(_harness, dims=2), 10, None, 0, VIEW_FAULTS),
    Case("store, elements of half a burst", "step_hw.units.store", partial(_harness, element_bytes=2), 12, None, 0,
         GROUP_FAULTS),
    Case("store, elements of 2 bursts on each of 2 channels", "step_hw.units.store",
         partial(_harness, element_bytes=16), 12, None, 0, (FAULTS[0], FAULTS[3], _OVERLAP)),
    Case("random_store, elements of half a burst", "step_hw.units.random_store",
         partial(_random_harness, element_bytes=2), 7, None, 0, (*GROUP_FAULTS, *RANDOM_FAULTS[:2], _GROUP)),
    Case("random_store, elements of 2 bursts on each of 2 channels", "step_hw.units.random_store",
         partial(_random_harness, element_bytes=16), 7, None, 0, (_OVERLAP, *RANDOM_FAULTS[:2])),
)
