"""Loads: a view's elements, or those addressed, in order, whatever order and time the memory answers in."""

from amaranth.hdl import Array, Cat, Mux, Signal

from step_hw.beat import BeatLayout
from step_hw.unit import ErrorCode
from step_lang.memory_config import MemoryConfig

from ..case import Case
from ..faults import Fault
from ..harness import Harness

__all__ = ["CASES"]

MEMORY = MemoryConfig(channels=2, burst_bytes=4, capacity_bytes=64)
LINES = 8
WINDOW = 2
MOST = 2
"""Largest view."""


def _harness(module) -> Harness:
    """Of a load whose elements have a burst on each of two channels, from consecutive positions."""
    unit = module.Load(BeatLayout(2), memory=MEMORY, element_bytes=8, window=WINDOW, reference=BeatLayout(1))
    loops = {f"{name}{k}": 1 for name in ("count", "stride") for k in range(6)}
    loops.pop("count0")
    h = Harness(unit, loops | {"dims": 1, "limit": 4})
    m, p, cfg = h.m, unit.in0.payload, unit.cfg
    rank = h.constant("rank", 4)
    h.legal(0, rank)
    h.assume("a view", (cfg.count0 != 0) & (cfg.count0 <= MOST) & (rank < 15))
    h.assume("the tensor is at a line of the memory", (cfg.base[:3] == 0) & (cfg.base < 32))

    contents, held = _memory(h)
    arrives = _arrives(h)
    owed = h.owes(0, WINDOW + MOST + 2)
    for k in range(MOST):
        beat = Signal(unit.output_layouts[0], name=f"beat{k}")
        m.d.comb += [
            beat.data.eq(contents[((cfg.base >> 3) + k)[:3]]), beat.rows.eq(1),
            beat.stop.eq(Mux(k + 1 == cfg.count0, p.stop + 1, 0)),
        ]
        owed.append(arrives & ~p.empty & (k < cfg.count0), beat)
    bare = Signal(unit.output_layouts[0])
    m.d.comb += [bare.empty.eq(1), bare.done.eq(p.done), bare.stop.eq(Mux(p.done, 0, p.stop + 1))]
    owed.append(arrives & p.empty, bare)
    owed.close(held=held, stall=4)
    h.grammatical(0, rank + 1)
    h.no_error()
    return h


def _memory(h: Harness):
    """A memory with any contents, which never change, that answers each request of the unit once, when and in which
    order it likes. Returns the contents by line, and whether it has an answer to give or a request to take.

    Channel 0 has the bits that are an element's.
    """
    m, unit = h.m, h.unit
    contents = Array(h.constant(f"line{k}", 2) for k in range(LINES))
    outstanding = []
    free = []
    for c in range(MEMORY.channels):
        request, answer = getattr(unit.mem, f"req{c}"), getattr(unit.mem, f"resp{c}")
        h.watch(f"req{c}", request)
        pending = Signal(WINDOW, name=f"pending{c}")
        lines = Array(Signal(range(LINES), name=f"line{c}_{k}") for k in range(WINDOW))
        answers, slot = h.any(f"answer{c}"), h.any(f"slot{c}", 1)
        h.assume(f"channel {c} answers what was asked", ~answers | pending.bit_select(slot, 1))
        asks = request.valid & request.ready
        h.prove(f"channel {c}: a slot in use is not asked for", ~asks | ~pending.bit_select(request.payload.slot, 1))
        m.d.comb += [
            answer.valid.eq(answers), answer.slot.eq(slot),
            getattr(unit.data, f"channel{c}").eq(contents[lines[slot]] if c == 0 else 0),
        ]
        m.d.sync += pending.eq((pending | (asks << request.payload.slot)) & ~(answers << slot))
        with m.If(asks):
            m.d.sync += lines[request.payload.slot].eq(request.payload.line)
        outstanding.append(pending)
        free.append(request.ready)

    return contents, Cat(outstanding).any() | ~Cat(free).all()


def _arrives(h: Harness) -> Signal:
    """A beat is at the input's head for the first time: what comes of it is known then."""
    i = h.unit.in0
    seen, arrives = Signal(), Signal()
    h.m.d.sync += seen.eq(i.valid & ~i.ready)
    h.m.d.comb += arrives.eq(i.valid & ~seen)
    return arrives


def _random_harness(module) -> Harness:
    """Of a load whose elements have a burst on each of two channels, at any addresses."""
    unit = module.RandomLoad(BeatLayout(2), address=BeatLayout(3), memory=MEMORY, element_bytes=8, window=WINDOW)
    h = Harness(unit)
    m, i, p, cfg = h.m, unit.in0, unit.in0.payload, unit.cfg
    rank = h.constant("rank", 4)
    h.legal(0, rank)
    h.assume("the tensor is at a line of the memory", (cfg.base[:3] == 0) & (cfg.base < 32))
    h.assume("and ends in it", cfg.limit <= 4)
    contents, held = _memory(h)
    arrives = _arrives(h)
    outside = Signal()
    m.d.comb += outside.eq(i.valid & ~p.empty & (p.data >= cfg.limit))
    beat = Signal(unit.output_layouts[0])
    m.d.comb += [
        beat.data.eq(Mux(p.empty, 0, contents[((cfg.base >> 3) + p.data)[:3]])), beat.rows.eq(~p.empty),
        beat.stop.eq(p.stop), beat.empty.eq(p.empty), beat.done.eq(p.done),
    ]
    owed = h.owes(0, WINDOW + 3)
    owed.append(arrives & ~outside, beat)
    owed.close(held=held, stall=4)
    h.grammatical(0, rank)
    h.prove("an address outside stays", ~outside | ~i.ready)
    h.prove("the right error", (unit.error == 0) | outside & (unit.error == ErrorCode.ADDRESS_RANGE))
    h.within("an address outside is an error", outside & (owed.queue.count == 0) & (unit.error == 0))
    return h


FAULTS = (
    Fault("a channel is asked twice", "req.valid.eq(offered & targets[c] & ~taken[c])",
          "req.valid.eq(offered & targets[c])"),
    Fault("made when one channel is asked", "((taken | took | ~targets).all()))", "((taken | took | ~targets).any()))"),
    Fault("leaves when one burst is there", "((present | ~expected).all())", "((present | ~expected).any())"),
    Fault("a full window takes a token", "offered.eq(have & (level != self.window) & (error == 0))",
          "offered.eq(have & (error == 0))"),
    Fault("a burst that has left stays", "& ~(leaves.replicate(bursts) << (head * bursts)))", ")"),
    Fault("the view's stop is lost", "Mux(counter.last, ref.payload.stop + self.cfg.dims, counter.wraps)",
          "Mux(counter.last, ref.payload.stop, counter.wraps)"),
)

_LOAD = "step_hw.units.load"
RANDOM_FAULTS = (
    Fault("an address outside is read", "outside.eq((index >= self.cfg.limit)", "outside.eq((index > self.cfg.limit)",
          _LOAD),
    Fault("a burst counts for the next element", "& ~(leaves.replicate(bursts) << (head * bursts)))", ")", _LOAD),
    Fault("one channel is not awaited", "((present | ~expected).all())", "((present | ~expected)[0])", _LOAD),
    Fault("the stop is lost", "tok.stop.eq(address.payload.stop)", "tok.stop.eq(0)"),
    Fault("a bare stop is an element", "tok.empty.eq(address.payload.empty)", "tok.empty.eq(address.payload.done)"),
    Fault("the address leaves before it is asked for", "address.ready.eq(advance)", "address.ready.eq(have)"),
    Fault("a full window takes a token", "offered.eq(have & (level != self.window) & (error == 0))",
          "offered.eq(have & (error == 0))", _LOAD),
)

CASES = (
    Case("load with reference, 2 channels", _LOAD, _harness, 9, None, 6, FAULTS),
    Case("random_load, 2 channels", "step_hw.units.random_load", _random_harness, 10, None, 6, RANDOM_FAULTS),
)
