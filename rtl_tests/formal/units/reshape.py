"""Reshape: every beat once, a level more where a chunk is full, chunks filled up with flagged padding."""

from functools import partial

from amaranth.hdl import Cat, Mux, Signal

from step_hw.beat import BeatLayout

from ..case import Case
from ..faults import Fault
from ..harness import Harness

__all__ = ["CASES"]

LAYOUT = BeatLayout(2)
PAD = 2
MOST = 3
"""Largest chunk and inner dimension."""


def _harness(module, dim: int) -> Harness:
    unit = module.Reshape(LAYOUT, PAD)
    h = Harness(unit, {"dim": dim} | {f"inner{k}": 1 for k in (0, 1) if k >= dim})
    m, i, p, cfg = h.m, unit.in0, unit.in0.payload, unit.cfg
    out, flag = unit.out0, unit.out1
    rank = h.constant("rank", 4)
    h.assume("the dimension exists", (rank >= dim) & (rank < 15) & (cfg.flag_rank <= dim))
    for size in (cfg.chunk, cfg.inner0, cfg.inner1):
        h.assume(f"size {size.name}", (size != 0) & (size <= MOST))
    h.legal(0, rank)

    # Dimensions below the one that is split are regular, and then there are no empty vectors.
    place0, place1 = Signal(range(MOST)), Signal(range(MOST))
    end0 = place0 + 1 == cfg.inner0
    end1 = end0 & (place1 + 1 == cfg.inner1)
    if dim:
        h.assume("inner dimensions are regular", ~i.valid | p.done | ~p.empty & ((p.stop >= 1) == end0) & (
            (p.stop >= 2) == end1 if dim == 2 else 1))
        with m.If(i.valid & i.ready & ~p.empty):
            m.d.sync += place0.eq(Mux(end0, 0, place0 + 1))
            if dim == 2:
                m.d.sync += place1.eq(Mux(end1, 0, Mux(end0, place1 + 1, place1)))

    filled = Signal(range(MOST + 1))    # complete positions of the chunk
    short = Signal()                    # the dimension has ended, the chunk has not
    level = Signal(4)                   # stop that then closes the chunk
    pad0, pad1 = Signal(range(MOST)), Signal(range(MOST))
    pads, position, full, goes = Signal(), Signal(), Signal(), Signal()
    stop = Signal(4)
    pad_end0 = pad0 + 1 == cfg.inner0
    pad_end = pad_end0 & (pad1 + 1 == cfg.inner1)
    m.d.comb += [
        pads.eq(short | i.valid & p.done & (filled != 0)),
        full.eq(filled + 1 == cfg.chunk),
        position.eq(Mux(pads, pad_end, ~p.empty & (p.stop >= dim))),
    ]
    with m.If(pads):
        m.d.comb += stop.eq(Mux(~pad_end, pad_end0, Mux(~full, dim, Mux(short, level, dim + 1))))
    with m.Elif(p.done):
        m.d.comb += stop.eq(0)
    with m.Elif(p.empty):
        m.d.comb += stop.eq(p.stop + 1)
    with m.Else():
        m.d.comb += stop.eq(Mux(p.stop < dim, p.stop, Mux(full, p.stop + 1, dim)))

    offered = short | i.valid
    wants = Cat(1, p.done & ~pads | (stop >= cfg.flag_rank))
    fires = Cat(o.valid & o.ready for o in unit.outs)
    got = Signal(2)
    m.d.comb += goes.eq(offered & (((got | fires) & wants) == wants))
    m.d.sync += got.eq(Mux(goes, 0, got | fires))
    with m.If(goes & position):
        m.d.sync += [filled.eq(Mux(full, 0, filled + 1)), short.eq(Mux(pads, short & ~full, ~full & (p.stop > dim)))]
        with m.If(~pads):
            m.d.sync += level.eq(p.stop + 1)
    with m.If(goes & pads):
        m.d.sync += [pad0.eq(Mux(pad_end0, 0, pad0 + 1)), pad1.eq(Mux(pad_end, 0, Mux(pad_end0, pad1 + 1, pad1)))]

    h.prove("a beat leaves when both have it, padding before it", ~i.valid | (i.ready == (goes & ~pads)))
    for k, (name, port) in enumerate((("data", out), ("flag", flag))):
        h.prove(f"{name} once", port.valid == (offered & wants[k] & ~got[k]))
    h.prove("the beat or padding", ~out.valid | Mux(
        pads, (out.payload.data == PAD) & (out.payload.rows == 1) & ~out.payload.empty & ~out.payload.done,
        Cat(out.payload.data, out.payload.rows, out.payload.empty, out.payload.done)
        == Cat(p.data, p.rows, p.empty, p.done)))
    h.prove("the stop", ~out.valid | (out.payload.stop == stop))
    last = ~pads & p.done
    h.prove("the flag", ~flag.valid | ((flag.payload.data == pads) & (flag.payload.done == last)
                                       & (flag.payload.stop == Mux(last, 0, stop - cfg.flag_rank))))
    h.grammatical(0, rank + 1)
    h.grammatical(1, rank + 1 - cfg.flag_rank)
    h.no_error()
    h.moves()
    return h


FAULTS = (
    Fault("a chunk is one longer", "filled.eq(place + 1 == cfg.chunk)", "filled.eq(place == cfg.chunk)"),
    Fault("an empty vector is a position", "& ~nothing)", ")"),
    Fault("padding is not flagged", "self.out1.payload.data.eq(pads)", "self.out1.payload.data.eq(0)"),
    Fault("a full chunk is padded again", "with m.If(position & filled):", "with m.If(0):"),
    Fault("padding ends a level too low", "closing.eq(p.stop + 1)", "closing.eq(p.stop)"),
    Fault("what is out is forgotten", "taken.eq(Mux(goes, 0, taken | takes))", "taken.eq(Mux(goes, 0, takes))"),
    Fault("done passes an open chunk", "pads.eq(tail | (i.valid & p.done & (place != 0)))", "pads.eq(tail)"),
)

CASES = tuple(
    Case(f"reshape, dimension {dim}", "step_hw.units.reshape", partial(_harness, dim=dim), 10, None, 6,
         FAULTS if dim == 0 else tuple(f for f in FAULTS if "empty" not in f.what))
    for dim in (0, 1, 2))
