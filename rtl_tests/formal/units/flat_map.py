"""Flat map: the addresses of every element one by one, its stop on the last; of none, on the one before; an address out
of range is an error."""

from functools import partial

from amaranth.hdl import Cat, Mux, Signal, signed, unsigned

from step_hw.beat import BeatLayout
from step_hw.hbm.affine import LOOPS
from step_hw.unit import ErrorCode
from step_lang import fn

from ..case import Case
from ..faults import Fault
from ..harness import Harness

__all__ = ["CASES"]

MOST = 2
"""Largest count."""
SCALE = 4
"""Of an element; a power of two, as products of other numbers are long to search."""


def _harness(module, ranged: bool = False) -> Harness:
    """Of ``counter``, or of ``address_range``: as many addresses as a count says."""
    unit = module.FlatMap(fn.address_range() if ranged else fn.counter(), BeatLayout(64 if ranged else 32))
    h = Harness(unit, {"stride": signed(4)} if ranged else {})
    m, i, p = h.m, unit.in0, unit.in0.payload
    rank = h.constant("rank", 4)
    h.legal(0, rank)
    count = p.data[-32:]
    h.assume("small counts", ~i.valid | (count <= MOST))
    if ranged:
        h.assume("addresses at the ends of the range", ~i.valid | (p.data[3:32] == 0) | p.data[3:32].all())

    owed = h.owes(0, MOST + 3)
    nothing = p.empty | (count == 0)
    unclosed = Signal()     # the last address closes no vector; the stop of an element without one may yet be its own
    addresses = [(p.data[:32] + k * unit.cfg.stride.as_signed() if ranged else k) for k in range(MOST)]
    wrong, arrives = _error(h, [(~nothing & (k < count), address) for k, address in enumerate(addresses)]
                            if ranged else [])
    closes = arrives & ~p.done & nothing & (p.stop != 0)
    owed.amend(closes & unclosed, p.stop, "a stop without an address finds the last one")
    for k, address in enumerate(addresses):
        beat = Signal(unit.result, name=f"beat{k}")
        m.d.comb += [beat.data.eq(address), beat.rows.eq(1), beat.stop.eq(Mux(k + 1 == count, p.stop, 0))]
        owed.append(arrives & ~p.empty & (k < count) & ~wrong[:k + 1].any(), beat)
    bare = Signal(unit.result)
    m.d.comb += [bare.empty.eq(1), bare.done.eq(p.done), bare.stop.eq(p.stop)]
    owed.append(arrives & p.done | closes & ~unclosed, bare)
    with m.If(arrives & (~nothing | (p.stop != 0) | p.done)):
        m.d.sync += unclosed.eq(~nothing & ((p.stop == 0) | wrong.any()))
    owed.close(held=unclosed & (owed.queue.count == 1))
    h.grammatical(0, rank)
    if not ranged:
        h.no_error()
    h.moves()
    return h


def _affine_harness(module) -> Harness:
    """Of ``affine_addresses`` of up to two dimensions."""
    loops = {f"{name}{k}": 1 for name in ("count", "stride") for k in range(2, LOOPS)}
    unit = module.FlatMap(fn.affine_addresses((MOST, MOST)), BeatLayout(32))
    small = {f"{name}{k}": shape for k in range(2) for name, shape in (("count", unsigned(2)), ("stride", signed(3)))}
    h = Harness(unit, loops | small | {"scale": SCALE, "base": signed(4)})      # at the low end of the range
    m, i, p, cfg = h.m, unit.in0, unit.in0.payload, unit.cfg
    rank = h.constant("rank", 4)
    h.assume("up to two dimensions", (cfg.dims != 0) & (cfg.dims <= 2) & (rank < 15))
    for count in (cfg.count0, cfg.count1):
        h.assume(f"a few in {count.name}", (count != 0) & (count <= MOST))
    h.assume("small elements", ~i.valid | (p.data < 4))
    h.legal(0, rank)
    first, two = Signal(signed(68)), cfg.dims == 2
    m.d.comb += first.eq(cfg.base.as_signed() + p.data * SCALE)
    places = [(k1, k0) for k1 in range(MOST) for k0 in range(MOST)]
    there = [~p.empty & (k0 < cfg.count0) & (k1 < Mux(two, cfg.count1, 1)) for k1, k0 in places]
    addresses = [Signal(signed(68), name=f"address{k1}{k0}") for k1, k0 in places]
    m.d.comb += [address.eq(first + (cfg.stride1.as_signed() if k1 else 0) + (cfg.stride0.as_signed() if k0 else 0))
                 for address, (k1, k0) in zip(addresses, places)]
    wrong, arrives = _error(h, list(zip(there, addresses)))
    owed = h.owes(0, len(places) + 2)
    for k, (k1, k0) in enumerate(places):
        beat = Signal(unit.result, name=f"beat{k}")
        row_ends = k0 + 1 == cfg.count0
        m.d.comb += [
            beat.data.eq(addresses[k]), beat.rows.eq(1),
            beat.stop.eq(Mux(row_ends, Mux(two, Mux(k1 + 1 == cfg.count1, p.stop + 1, 1), p.stop), 0)),
        ]
        owed.append(arrives & there[k] & ~wrong[:k + 1].any(), beat)
    bare = Signal(unit.result)
    m.d.comb += [bare.empty.eq(1), bare.done.eq(p.done), bare.stop.eq(Mux(p.done, 0, p.stop + cfg.dims - 1))]
    owed.append(arrives & p.empty, bare)
    owed.close()
    h.grammatical(0, rank + cfg.dims - 1)
    h.moves()
    return h


def _error(h: Harness, addresses) -> tuple[Signal, Signal]:
    """Of the element at the head: which of ``addresses``, of each whether it is there and its value, is no u32. An
    address that is none stays an error at the head. Second: the element is at the head for the first time, so that what
    comes of it is known."""
    m, i, unit = h.m, h.unit.in0, h.unit
    arrives = h.arrives()
    wrong = Signal(max(1, len(addresses)))
    if addresses:
        m.d.comb += wrong.eq(Cat(there & (address >> 32 != 0) for there, address in addresses))
        h.prove("an element with an address out of range stays", ~(i.valid & wrong.any()) | ~i.ready)
        h.prove("the right error", (unit.error == 0) | i.valid & wrong.any() & (unit.error == ErrorCode.ADDRESS_RANGE))
        h.within("an address out of range is an error", i.valid & wrong.any() & unit.out0.ready & (unit.error == 0),
                 len(addresses) + 3)
    return wrong, arrives


FAULTS = (
    Fault("one address too many", "self.last.eq(made + 1 == count)", "self.last.eq(made == count)"),
    Fault("the stop of an element without address is lost", "m.d.comb += o.payload.stop.eq(token.stop)", "pass"),
    Fault("an open address does not wait", "o.valid.eq(full & (~open_ | have & ~vanishes))", "o.valid.eq(full)"),
    Fault("an element leaves with its first address", "i.ready.eq(takes & ends)", "i.ready.eq(takes)"),
    Fault("a full register is overwritten", "takes.eq(have & (vanishes | ~full | o.valid & o.ready))",
          "takes.eq(have)"),
    Fault("an element without address leaves a beat",
          "vanishes.eq(have & token.empty & ~token.done & (token.stop == 0))", "vanishes.eq(0)"),
)
_WRAPS = Fault("an address out of range wraps", "pieces.address >> NUMBER != 0", "0")
RANGE_FAULTS = (
    *FAULTS, _WRAPS,
    Fault("the stride is no signed number", "offset + self.stride.as_signed()", "offset + self.stride"),
    Fault("the place is kept for the next element", "offset.eq(Mux(self.last, 0, ", "offset.eq(Mux(0, 0, "),
)
_COUNTER = "step_hw.hbm.affine"
AFFINE_FAULTS = (
    _WRAPS,
    Fault("the element's stop is not raised", "i.payload.stop + pieces.levels, pieces.wraps)",
          "i.payload.stop, pieces.wraps)"),
    Fault("inner stops are lost", "i.payload.stop + pieces.levels, pieces.wraps)",
          "i.payload.stop + pieces.levels, 0)"),
    Fault("an element leaves with its first address", "i.ready.eq(takes & ends)", "i.ready.eq(takes)"),
    Fault("the place moves while the output waits", "pieces.step.eq(takes & element", "pieces.step.eq(have & element"),
    Fault("inner loops go on from where they were", "m.d.sync += [rounds[k].eq(rounds[k] + 1), starts[k].eq(moved)]",
          "m.d.sync += [rounds[k].eq(rounds[k] + 1), starts[k].eq(starts[k] + strides[k])]", _COUNTER),
    Fault("a loop of one iteration more", "rounds[k] + 1 >= counts[k]", "rounds[k] >= counts[k]", _COUNTER),
)

_UNIT = "step_hw.units.flat_map"
CASES = (
    Case("flat_map counter", _UNIT, _harness, 12, None, 6, FAULTS),
    Case("flat_map address_range", _UNIT, partial(_harness, ranged=True), 7, None, 0, RANGE_FAULTS),
    Case("flat_map affine_addresses, up to 2 dimensions", _UNIT, _affine_harness, 7, None, 4, AFFINE_FAULTS),
)
