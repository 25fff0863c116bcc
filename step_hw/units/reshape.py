"""Reshape: a dimension becomes chunks; an unfinished chunk is padded."""

import hashlib

from amaranth.hdl import Cat, Module, Mux, Signal

from ..beat import STOP_WIDTH, BeatLayout
from ..unit import ErrorCode, Unit
from .repeat import COUNT_WIDTH

__all__ = ["Reshape"]


class Reshape(Unit):
    """Hardware of ``step_lang.ops.reshape``: ``out0`` data, ``out1`` padding flags. Latency 0, one output beat a cycle.

    Parameters
    ----------
    layout : BeatLayout
    pad : int or None
        Data bits of a padding element; None: an unfinished chunk raises ``SHAPE``.
    pad_rows : int or None
        Valid rows of a padding element, default the layout's ``max_rows``.
    flags : bool
        Whether ``out1`` exists; its elements are one bit, 1 on padding, one for ``flag_rank`` inner dimensions.

    ============== ===== ====================================================================================
    register       width meaning
    ============== ===== ====================================================================================
    dim            4     dimension that is split, innermost 0
    flag_rank      4     inner dimensions, at most ``dim``, that share a flag
    chunk          32    positions in a chunk, >= 1
    inner1, inner0 32    sizes of dimensions 1 and 0 below ``dim`` (1 where there is none): padding for one
                         position is inner1 * inner0 elements; only padding reads them
    ============== ===== ====================================================================================

    A *position* of ``dim`` is an element when dim = 0, else what ends with a stop >= dim. Stops below ``dim`` stay; a
    stop (or done) that ends the dimension inside a chunk is followed by padding, whose last element carries it, one
    higher. A bare stop that would end tensors that share a flag raises ``SHAPE``.
    """

    kind = "reshape"

    def __init__(self, layout: BeatLayout, pad: int | None = 0, pad_rows: int | None = None, flags: bool = True):
        if pad is not None and not 0 <= pad < 1 << layout.data_width:
            raise ValueError(f"padding {pad:#x} does not fit {layout.data_width} data bits")
        if pad_rows is not None and not 1 <= pad_rows <= layout.max_rows:
            raise ValueError(f"padding has 1 to {layout.max_rows} valid rows, not {pad_rows}")
        self.layout = layout
        self.pad = pad
        self.pad_rows = layout.max_rows if pad_rows is None else pad_rows
        self.flags = flags
        super().__init__([layout], [layout] + [BeatLayout(1)] * flags, state_width=3, cfg={
            "dim": STOP_WIDTH, "flag_rank": STOP_WIDTH, "chunk": COUNT_WIDTH, "inner1": COUNT_WIDTH,
            "inner0": COUNT_WIDTH})

    @property
    def module_name(self) -> str:
        name = f"reshape_{self.layout.key}" + ("" if self.flags else "_noflags")
        if self.pad is None:
            return name + "_nopad"
        if self.pad_rows != self.layout.max_rows:
            name += f"_r{self.pad_rows}"
        text = f"{self.pad:x}"
        if len(text) > 8:  # a whole tile of padding: no name for a person
            text = hashlib.sha256(text.encode()).hexdigest()[:8]
        return f"{name}_p{text}" if self.pad else name

    def elaborate(self, platform):
        m = Module()
        i, o, cfg = self.in0, self.out0, self.cfg
        p, dim = i.payload, cfg.dim
        place = Signal(COUNT_WIDTH)         # positions of the chunk that are complete
        tail = Signal()                     # the dimension has ended inside a chunk
        closing = Signal(STOP_WIDTH)        # stop of the last padding element of that tail
        # where padding is inside a position
        at1 = Signal(COUNT_WIDTH)
        at0 = Signal(COUNT_WIDTH)
        pads = Signal()
        filled = Signal()
        position = Signal()
        ends = Signal()
        unfinished = Signal()
        bad = Signal()
        nothing = Signal()
        goes = Signal()
        stop = Signal(STOP_WIDTH)

        last0, last1 = at0 + 1 == cfg.inner0, at1 + 1 == cfg.inner1
        m.d.comb += [
            pads.eq(tail | (i.valid & p.done & (place != 0))),
            filled.eq(place + 1 == cfg.chunk),
            ends.eq(~p.done & (p.stop > dim)),
            # A bare stop that is all of a dimension (or more) ends an empty one: no position, nothing to pad.
            nothing.eq(p.empty & ends & (place == 0)),
            position.eq(Mux(pads, last0 & last1, ~p.done & (p.stop >= dim) & ~nothing)),
            unfinished.eq(~pads & position & ends & ~filled),
        ]
        with m.If(pads):
            m.d.comb += stop.eq(Mux(~position, last0, Mux(~filled, dim, Mux(tail, closing, dim + 1))))
        with m.Elif(position & ~filled):
            m.d.comb += stop.eq(Mux(ends, dim, p.stop))
        with m.Else():
            m.d.comb += stop.eq(Mux(p.done | (p.stop < dim), p.stop, p.stop + 1))

        with m.If(i.valid & ~tail & (p.stop == (1 << STOP_WIDTH) - 1)):
            m.d.comb += bad.eq(1)
            m.d.sync += self.error.eq(ErrorCode.STOP_RANGE)
        with m.Elif(i.valid & ~tail & (dim == 0) & (place != 0) & p.empty & ~p.done):
            m.d.comb += bad.eq(1)           # this stop belongs on the element before it
            m.d.sync += self.error.eq(ErrorCode.PROTOCOL)
        # Padding cannot repeat a position that is empty, and what shares a flag has elements.
        with m.Elif((pads | (i.valid & unfinished) if self.pad is None else i.valid & unfinished & p.empty)
                    | (i.valid & ~tail & p.empty & (p.stop != 0) & (p.stop <= cfg.flag_rank))):
            m.d.comb += bad.eq(1)
            m.d.sync += self.error.eq(ErrorCode.SHAPE)

        # Both outputs are eager: one that has taken the beat is remembered. Flags get the last of those that share one.
        outs = self.outs
        taken = Signal(len(outs))
        told = Signal()
        wants = [1, told][:len(outs)]
        takes = Cat(out.valid & out.ready for out in outs)
        offers = (i.valid | tail) & ~bad
        m.d.comb += [
            told.eq((p.done & ~pads) | (stop >= cfg.flag_rank)),
            goes.eq(offers & (taken | takes | ~Cat(wants)).all()),
            i.ready.eq(goes & ~pads),
            self.state.eq(Cat(taken, tail)),
        ]
        for k, out in enumerate(outs):
            m.d.comb += [out.valid.eq(offers & wants[k] & ~taken[k]), out.payload.stop.eq(stop)]
            with m.If(~pads):
                m.d.comb += [out.payload.empty.eq(p.empty), out.payload.done.eq(p.done)]
        with m.If(pads):
            m.d.comb += [o.payload.data.eq(self.pad or 0), o.payload.rows.eq(self.pad_rows)]
        with m.Else():
            m.d.comb += [o.payload.data.eq(p.data), o.payload.rows.eq(p.rows)]
        if self.flags:
            m.d.comb += [self.out1.payload.data.eq(pads), self.out1.payload.rows.eq(pads | ~p.empty)]
            with m.If(pads | ~p.done):
                m.d.comb += self.out1.payload.stop.eq(stop - cfg.flag_rank)

        m.d.sync += taken.eq(Mux(goes, 0, taken | takes))
        with m.If(goes):
            with m.If(position):
                m.d.sync += place.eq(Mux(filled, 0, place + 1))
            with m.If(pads):
                m.d.sync += at0.eq(Mux(last0, 0, at0 + 1))
                with m.If(last0):
                    m.d.sync += at1.eq(Mux(last1, 0, at1 + 1))
                with m.If(position & filled):
                    m.d.sync += tail.eq(0)
            with m.Elif(unfinished):
                m.d.sync += [tail.eq(1), closing.eq(p.stop + 1)]
        return m
