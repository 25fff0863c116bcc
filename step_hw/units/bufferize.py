"""Bufferize: inner dimensions into a scratchpad, a reference for each buffer."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib.wiring import Out

from step_lang.mapping.registers import USES_WIDTH

from ..beat import STOP_WIDTH
from ..unit import ErrorCode, Unit
from .scratchpad import ScratchpadShape, WritePort

__all__ = ["Bufferize"]


class Bufferize(Unit):
    """Hardware of ``step_lang.ops.bufferize`` (SPEC section 2, On-chip memory).

    Stores every element, with its stop, in the next frame of the open buffer; an element at a page's start takes a
    page, the first takes a reference. On a stop >= rank the buffer is complete and its reference leaves in the same
    cycle with stop - rank. A bare stop of that level with nothing stored completes an empty buffer (length 0, no page).
    Latency 0, one beat a cycle while a reference, a page and (at the end) the output are free; it waits for each.

    ========== ===== =================================================================================
    register   width meaning
    ========== ===== =================================================================================
    rank       4     b, the number of buffered dimensions; >= 1
    uses       8     uses that free a buffer: how many streamifies and routers get each reference (0: it is freed at
                     once)
    hollow     1     buffers are never empty: a bare stop s > rank leaves as a bare stop s - rank
    ========== ===== =================================================================================

    Where references of several scratchpads meet (``shape.owners``), a reference says that its scratchpad is number
    ``owner`` of them.

    Ports: ``in0`` elements, ``out0`` references (``shape.reference_layout``), ``port`` to the scratchpad; ``filled``
    elements of the open buffer and ``waits`` (bit 0: for a page, bit 1: for a reference), for messages.

    Errors: EXHAUSTED when a buffer needs a page, none is free, and no other buffer exists that could give one back;
    SHAPE when an inner vector of a buffer with elements is empty, or a buffer that may not be; PROTOCOL when the stream
    ends inside a buffer.
    """

    kind = "bufferize"

    def __init__(self, shape: ScratchpadShape, owner: int = 0):
        if not 0 <= owner < shape.owners:
            raise ValueError(f"the scratchpad is one of {shape.owners}, not number {owner}")
        self.shape = shape
        self.owner = owner
        super().__init__([shape.layout], [shape.reference_layout],
                         cfg={"rank": STOP_WIDTH, "uses": USES_WIDTH, "hollow": 1}, state_width=3,
                         extra={"port": Out(WritePort(shape.own)), "waits": Out(2),
                                "filled": Out(range(shape.frames + 1))})

    @property
    def module_name(self) -> str:
        return f"bufferize_{self.shape.key}" + (f"n{self.owner}" if self.shape.owners > 1 else "")

    def elaborate(self, platform):
        m = Module()
        shape, i, o, w = self.shape, self.in0, self.out0, self.port
        beat = i.payload

        open_ = Signal()                          # a reference is held: elements have been stored
        held = Signal(shape.own_bits)             # that reference
        count = Signal(range(shape.frames + 1))   # elements stored in the open buffer
        page = Signal(shape.page_bits)            # page that is being filled
        hollow = Signal()                         # bare stops so far, and no element

        fused = ~beat.empty
        bare = beat.empty & ~beat.done
        completes = ~beat.done & (beat.stop >= self.cfg.rank)
        offset = count[:shape.offset_bits]
        needs_page = fused & (offset == 0)
        passes = bare & self.cfg.hollow           # no buffer: the stop goes on
        stores = completes & ~passes
        needs_ref = ~open_ & (fused | stores)
        can = ~(needs_page & ~w.page_free) & ~(needs_ref & ~w.ref_free)

        misshapen = (fused & hollow) | (bare & open_) | (passes & (beat.stop <= self.cfg.rank))
        unfinished = beat.done & (open_ | hollow)
        exhausted = open_ & needs_page & ~w.page_free & w.alone
        with m.If(i.valid & (self.error == ErrorCode.NONE)):
            with m.If(misshapen):
                m.d.sync += self.error.eq(ErrorCode.SHAPE)
            with m.Elif(unfinished):
                m.d.sync += self.error.eq(ErrorCode.PROTOCOL)
            with m.Elif(exhausted):
                m.d.sync += self.error.eq(ErrorCode.EXHAUSTED)

        whose = Const(self.owner, shape.reference_bits - shape.own_bits)
        good = Signal()     # the beat can be stored
        accept = Signal()
        m.d.comb += [
            good.eq(can & ~misshapen & ~unfinished & (self.error == ErrorCode.NONE)),
            # A reference leaves when its buffer is complete; done passes as it is.
            o.valid.eq(i.valid & good & (completes | beat.done)),
            o.payload.data.eq(Mux(beat.done | passes, 0, Cat(w.owner, whose))),
            o.payload.rows.eq(~beat.done & ~passes),
            o.payload.stop.eq(Mux(beat.done, 0, beat.stop - self.cfg.rank)),
            o.payload.empty.eq(beat.done | passes),
            o.payload.done.eq(beat.done),
            i.ready.eq(good & (o.ready | ~(completes | beat.done))),
            accept.eq(i.valid & i.ready),
            self.state.eq(Cat(open_, needs_page & ~w.page_free, needs_ref & ~w.ref_free)),
            self.waits.eq(Mux(i.valid, self.state[1:], 0)), self.filled.eq(count),
        ]

        # Scratchpad side.
        address = Signal(shape.offset_bits + shape.page_bits)
        m.d.comb += [
            w.claim.eq(accept & needs_ref),
            w.owner.eq(Mux(open_, held, w.ref)),
            w.take.eq(accept & needs_page), w.number.eq(count >> shape.offset_bits),
            address.eq(Cat(offset, Mux(needs_page, w.page, page))),
            w.write.eq(accept & fused), w.address.eq(address),
            w.frame.data.eq(beat.data), w.frame.rows.eq(beat.rows), w.frame.stop.eq(beat.stop),
            w.close.eq(accept & stores), w.length.eq(count + fused), w.uses.eq(self.cfg.uses),
        ]

        with m.If(accept):
            with m.If(completes):
                m.d.sync += [open_.eq(0), count.eq(0), hollow.eq(0)]
            with m.Elif(fused):
                m.d.sync += [open_.eq(1), held.eq(w.owner), count.eq(count + 1)]
            with m.Elif(bare):
                m.d.sync += hollow.eq(1)
            with m.If(needs_page):
                m.d.sync += page.eq(w.page)
        return m
