"""Streamify of views: the elements of every pass, its loops' stops inside it, in a scratchpad that grants reads as it
pleases; with a reference, a pass for each of its elements, and each buffer given back with its last."""

from functools import partial

from amaranth.hdl import Array, Cat, Const, Mux, Signal, Value, unsigned

from step_hw.beat import BeatLayout
from step_hw.unit import ErrorCode
from step_hw.units.scratchpad import FrameLayout, ScratchpadShape
from step_hw.units.streamify import LOOPS

from ..case import Case
from ..faults import Fault
from ..harness import Harness

__all__ = ["CASES"]

SHAPE = ScratchpadShape(4, 1, 2, BeatLayout(2))
LONGEST = 3
"""Most elements of a buffer."""
MOST = 2
"""Largest count of a loop that is not open."""
DIMS = 2


def _harness(module, reference: bool) -> Harness:
    """Views of two loops, open ones too. A single use of each buffer without a reference."""
    unit = module.Streamify(SHAPE, BeatLayout(1) if reference else None)
    unused = {f"count{k}": 1 for k in range(DIMS, LOOPS)} | {f"stride{k}": 0 for k in range(DIMS, LOOPS)}
    small = {f"{name}{k}": unsigned(2) for name in ("count", "stride") for k in range(DIMS)}
    passes = {"repeat": 5} if reference else {"c": 0, "repeat": 1}
    h = Harness(unit, unused | small | passes | {"n": DIMS, "affine": 1})
    m, cfg, port = h.m, unit.cfg, unit.port
    head, driver = unit.in0, unit.ins[-1]
    buffer, p = head.payload, driver.payload
    rank = h.constant("rank", 4)
    h.assume("a stop for the view", (rank + DIMS <= 15) & ((cfg.c <= rank) if reference else 1))
    h.legal(0, rank - cfg.c if reference else rank)
    if reference:
        h.legal(1, rank)
    present, ends_use = Signal(), Signal()
    m.d.comb += [present.eq(head.valid & driver.valid), ends_use.eq((p.stop >= cfg.c) if reference else 1)]
    if reference:
        aligned = (p.done == buffer.done) & (p.empty | ~buffer.empty) & (
            p.done | ~ends_use | (buffer.stop == p.stop - cfg.c))
        h.assume("buffers are those of the reference", ~present | aligned)

    live, length = h.any("live"), h.any("length", range(LONGEST + 1))
    _buffers(h, live, length)
    grant = h.any("grant")
    contents = Array(Cat(h.constant(f"frame{k}", SHAPE.layout.data_width), Const(1, FrameLayout(
        SHAPE.layout).size - SHAPE.layout.data_width)) for k in range(SHAPE.frames))
    frame = Signal(FrameLayout(SHAPE.layout))
    h.assume("what is asked for is granted", ~grant | port.request)
    m.d.comb += [port.live.eq(live), port.length.eq(length), port.grant.eq(grant), port.frame.eq(frame)]
    with m.If(grant):
        m.d.sync += frame.eq(contents[port.index])
    h.prove("of the right buffer", ~present | buffer.empty | (port.ref == buffer.data))

    seen, arrives, freed = Signal(), Signal(), Signal()
    m.d.comb += [arrives.eq(present & ~seen), freed.eq(present & ~buffer.empty & ~live)]
    m.d.sync += seen.eq(present & ~driver.ready)
    reads = ~p.empty & (length != 0)
    positions = _positions(h, length)
    leaves_buffer = Signal(len(positions))
    m.d.comb += leaves_buffer.eq(Cat(reads & there & (index >= length) for there, index, _, _ in positions))
    owed = h.owes(0, len(positions) + 2)
    for k, (there, index, stop, over) in enumerate(positions):
        beat = Signal(unit.output_layouts[0], name=f"beat{k}")
        stored = Signal(FrameLayout(SHAPE.layout), name=f"stored{k}")
        m.d.comb += [stored.eq(contents[index[:2]]), beat.data.eq(stored.data), beat.rows.eq(stored.rows),
                     beat.stop.eq(Mux(over, p.stop + DIMS, stop))]
        owed.append(arrives & ~freed & reads & there & ~leaves_buffer[:k + 1].any(), beat)
    bare = Signal(unit.output_layouts[0])
    m.d.comb += [bare.empty.eq(1), bare.done.eq(p.done), bare.stop.eq(Mux(p.done, 0, p.stop + DIMS))]
    owed.append(arrives & ~freed & ~reads, bare)
    owed.close(held=port.request & ~grant, stall=4)

    good = ~freed & ~leaves_buffer.any()
    h.prove("a pass that cannot be stays", ~present | good | ~driver.ready)
    h.prove("the right error", (unit.error == 0) | present & Mux(
        freed, unit.error == ErrorCode.FREED, leaves_buffer.any() & (unit.error == ErrorCode.ADDRESS_RANGE)))
    h.prove("no read outside the buffer", ~port.request | (port.index < length))
    h.prove("a buffer leaves with its last pass", ~head.valid | (head.ready == (
        present & driver.ready & (ends_use | buffer.done))))
    h.prove("and is given back then", port.release == (head.valid & head.ready & ~buffer.empty))
    h.grammatical(0, rank + DIMS)
    h.within("a pass goes on", present & (unit.error == 0) & unit.out0.ready & ~unit.out0.valid & (
        ~port.request | grant), 4)
    return h


def _buffers(h: Harness, live, length) -> None:
    """What the buffer at the head is does not change while it is there."""
    m, head = h.m, h.unit.in0
    waits, was = Signal(), Signal(1 + len(length), name="was")
    m.d.sync += [waits.eq(head.valid & ~head.ready), was.eq(Cat(live, length))]
    h.assume("a buffer stays what it is", ~waits | (was == Cat(live, length)))


def _positions(h: Harness, length) -> list[tuple[Value, Value, Value, Value]]:
    """Of each position that two loops can have in a buffer of ``length``: whether it is there, its element, its stop if
    it is not the last one, whether it is."""
    cfg = h.unit.cfg
    counts, strides = (cfg.count0, cfg.count1), (cfg.stride0[:2], cfg.stride1[:2])
    for k, (count, stride) in enumerate(zip(counts, strides)):
        h.assume(f"loop {k} is small", count <= MOST)
        # The outer one of few iterations where it is open.
        h.assume(f"loop {k} ends", (count != 0) | (stride > k))

    def goes(k: int, step: int, start) -> Value:
        """Loop ``k`` has iteration ``step``, which begins at ``start``."""
        return Const(1) if step == 0 else Mux(counts[k] == 0, start < length, step < counts[k])

    made = []
    for outer in range(MOST):
        begin = strides[1] * outer
        more = goes(1, outer + 1, strides[1] * (outer + 1)) if outer + 1 < MOST else Const(0)
        # Every iteration before has begun too.
        reached = goes(1, outer, begin)
        for inner in range(LONGEST):
            at = begin + strides[0] * inner
            inside = goes(0, 1, begin + strides[0]) if inner else Const(1)
            for step in range(2, inner + 1):
                inside = inside & goes(0, step, begin + strides[0] * step)
            ends = ~goes(0, inner + 1, begin + strides[0] * (inner + 1)) if inner + 1 < LONGEST else Const(1)
            made.append((reached & inside, at, ends, ends & ~more))
    return made


FAULTS = (
    Fault("inner loops go on from where they were", "[start[j].eq(stepped[k]) for j in range(k + 1)]",
          "[start[j].eq(stepped[k]) for j in range(k, k + 1)]"),
    Fault("inner loops do not begin again", "[at[j].eq(0) for j in range(k)]", "[at[j].eq(at[j]) for j in range(k)]"),
    Fault("the place is not put back after a pass", "m.d.sync += [at[k].eq(0), start[k].eq(0)]",
          "m.d.sync += [at[k].eq(0), start[k].eq(start[k])]"),
    Fault("an open loop ends one late", "stepped[k] >= p.length", "stepped[k] > p.length"),
    Fault("inner stops are lost", "Mux(last, pass_stop, view_stop)", "Mux(last, pass_stop, 0)"),
    Fault("a view may leave its buffer", "index >= p.length)", "index > p.length)"),
    Fault("a read without a grant", "fire.eq(wants & (~reads | p.grant))", "fire.eq(wants)"),
    Fault("a stage that is full is overwritten", "wants.eq(present & good & (~full | o.ready))",
          "wants.eq(present & good)"),
    Fault("a bare stop gives a buffer back", "p.release.eq(head.ready & ~buffer.empty)", "p.release.eq(head.ready)"),
)
REFERENCE_FAULTS = (
    *FAULTS[2:5],
    Fault("a buffer is kept for one stop more", "ends_use.eq(ref.stop >= cfg.c)", "ends_use.eq(ref.stop > cfg.c)"),
    Fault("the reference leaves with the buffer", "self.in1.ready.eq(fire & last)",
          "self.in1.ready.eq(fire & last & ends_use)"),
    Fault("the stop is the buffer's", "stop.eq(ref.stop), ends_use", "stop.eq(buffer.stop), ends_use"),
    Fault("a bare stop reads the buffer", "present.eq(head.valid & self.in1.valid), driver_bare.eq(ref.empty)",
          "present.eq(head.valid & self.in1.valid), driver_bare.eq(buffer.empty)"),
)

_UNIT = "step_hw.units.streamify"
CASES = (
    Case("streamify, views of 2 loops", _UNIT, partial(_harness, reference=False), 8, None, 0, FAULTS),
    Case("streamify with reference, views of 2 loops", _UNIT, partial(_harness, reference=True), 8, None, 4,
         REFERENCE_FAULTS),
)
