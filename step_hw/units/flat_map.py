"""Flat map of the address functions: every element becomes a stream of addresses."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from step_lang.errors import UnknownFunction
from step_lang.fn.base import Function

from ..beat import STOP_WIDTH, BeatLayout
from ..hbm.affine import AFFINE_REGISTERS, AffineCounter
from ..unit import ErrorCode, Unit

__all__ = ["AffinePieces", "FlatMap", "RangePieces"]

NUMBER = 32
"""Bits of an address or count: a u32."""


class _Pieces(wiring.Component):
    """Makes the addresses of the element at the unit's input, one after the other.

    Members: ``element`` In, its data; the registers of ``cfg`` In; ``step`` In, go to the next address, after the last
    one to the first; ``address`` Out, signed and wider than an address, so that one out of range shows; ``last`` Out,
    no other follows; ``nothing`` Out, there is not even one; ``wraps`` Out, stop level that ends here within the
    element; ``levels`` Out, the rank of what one element becomes.
    """

    bits: int
    """Data bits of an element."""
    cfg: dict[str, int]
    waits: bool
    """Whether an element may become nothing, so that its stop is for an element before it."""

    def __init__(self):
        super().__init__({
            "element": In(self.bits), **{name: In(width) for name, width in self.cfg.items()}, "step": In(1),
            "address": Out(signed(68)), "last": Out(1), "nothing": Out(1), "wraps": Out(3), "levels": Out(3)})


class AffinePieces(_Pieces):
    """``base + x * scale + sum(i_k * stride_k)``: an `AffineCounter` beside a multiplier."""

    bits = NUMBER
    cfg = {"base": NUMBER, "scale": NUMBER} | AFFINE_REGISTERS
    waits = False

    def elaborate(self, platform):
        m = Module()
        m.submodules.counter = counter = AffineCounter()
        m.d.comb += [getattr(counter.cfg, name).eq(getattr(self, name)) for name in AFFINE_REGISTERS]
        m.d.comb += [
            counter.step.eq(self.step),
            self.address.eq(self.base.as_signed() + self.element * self.scale.as_signed() + counter.index),
            self.last.eq(counter.last),
            self.wraps.eq(counter.wraps),
            self.levels.eq(self.dims - 1),
        ]
        return m


class RangePieces(_Pieces):
    """``start, start + stride, ..``, ``count`` of them; with ``counts`` only, the count is the element, from 0 by 1."""

    waits = True

    def __init__(self, counts: bool = False):
        self.counts = counts
        self.bits = NUMBER if counts else 2 * NUMBER
        self.cfg = {} if counts else {"stride": NUMBER}
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        count = self.element[-NUMBER:]
        made = Signal(NUMBER)
        m.d.comb += [self.last.eq(made + 1 == count), self.nothing.eq(count == 0)]
        with m.If(self.step):
            m.d.sync += made.eq(Mux(self.last, 0, made + 1))
        if self.counts:
            m.d.comb += self.address.eq(made)
        else:
            offset = Signal(signed(NUMBER + 2))     # as long as addresses are in range
            m.d.comb += self.address.eq(self.element[:NUMBER] + offset)
            with m.If(self.step):
                m.d.sync += offset.eq(Mux(self.last, 0, offset + self.stride.as_signed()))
        return m


_PIECES = {
    "affine_addresses": AffinePieces,
    "address_range": RangePieces,
    "counter": lambda: RangePieces(counts=True),
}


class FlatMap(Unit):
    """Hardware of ``step_lang.ops.flat_map`` of a function that makes addresses. Latency 1, one address a cycle.

    A register stands before the output. Where an element may become nothing, an address without stop (``open``) waits
    in it for the beat behind: the stop of an element of which nothing is made, behind others, is the last one's.

    ========================= ===== ===================================================
    register                  width meaning
    ========================= ===== ===================================================
    affine_addresses:
    base, scale               32    the address of element x begins at base + x * scale (two's complement)
    dims                      3     dimensions of what an element becomes, 1 to 6
    count0..5, stride0..5     32    of each, 0 innermost; see ``step_hw.hbm.affine``. No count is 0.
    address_range:
    stride                    32    from one address to the next (two's complement)
    ========================= ===== ===================================================

    An address that is no u32 raises ADDRESS_RANGE, a stop without a level for it STOP_RANGE.
    """

    kind = "flat_map"

    def __init__(self, function: Function, element: BeatLayout):
        if function.name not in _PIECES:
            raise UnknownFunction(f"function {function.name!r} in flat_map vs those with hardware: "
                                  f"{', '.join(sorted(_PIECES))}")
        self.address_function = function
        self.pieces = _PIECES[function.name]()
        if element.data_width != self.pieces.bits:
            raise ValueError(f"an element of {function.name} has {self.pieces.bits} bits, not {element.data_width}")
        self.result = BeatLayout(NUMBER)
        super().__init__([element], [self.result], cfg=self.pieces.cfg, state_width=2)

    @property
    def module_name(self) -> str:
        return f"flat_map_{self.address_function.name}"

    def elaborate(self, platform):
        m = Module()
        i, o = self.in0, self.out0
        m.submodules.pieces = pieces = self.pieces
        error = Signal(4)
        held = Signal(self.result, reset_less=True)
        full = Signal()
        open_ = Signal()
        token = Signal(self.result)     # what is to be made next
        have = Signal()
        stop = Signal(STOP_WIDTH + 1)
        wrong = Signal(4)
        vanishes = Signal()     # nothing is made, and it closes nothing
        closes = Signal()       # nothing is made, and it closes the vector of the open address
        takes = Signal()
        element = ~i.payload.empty
        nothing = Signal()      # a beat without an address; its own signal: Verilator misses a read of part of token
        ends = i.payload.empty | pieces.nothing | pieces.last
        m.d.comb += [
            pieces.element.eq(i.payload.data),
            *(getattr(pieces, name).eq(getattr(self.cfg, name)) for name in self.cfg_widths),
            stop.eq(Mux(i.payload.done | (pieces.nothing & (i.payload.stop == 0)), 0,
                        Mux(ends, i.payload.stop + pieces.levels, pieces.wraps))),
            nothing.eq(i.payload.empty | pieces.nothing),
            token.empty.eq(nothing),
            token.done.eq(i.payload.done),
            token.stop.eq(stop),
            token.data.eq(Mux(nothing, 0, pieces.address)),
            token.rows.eq(~nothing),
        ]
        with m.If(i.valid & (stop >> STOP_WIDTH != 0)):
            m.d.comb += wrong.eq(ErrorCode.STOP_RANGE)
        with m.Elif(i.valid & ~token.empty & (pieces.address >> NUMBER != 0)):
            m.d.comb += wrong.eq(ErrorCode.ADDRESS_RANGE)
        m.d.comb += [
            have.eq(i.valid & (wrong == 0) & (error == 0)),
            vanishes.eq(have & token.empty & ~token.done & (token.stop == 0)),
            closes.eq(have & token.empty & ~token.done & (token.stop != 0) & full & open_),
            o.payload.eq(held),
            o.valid.eq(full & (~open_ | have & ~vanishes)),
            takes.eq(have & (vanishes | ~full | o.valid & o.ready)),
            i.ready.eq(takes & ends),
            pieces.step.eq(takes & element & ~pieces.nothing),
            self.error.eq(error),
            self.state.eq(Cat(full, full & open_)),
        ]
        with m.If(closes):
            m.d.comb += o.payload.stop.eq(token.stop)
        with m.If(takes & ~vanishes & ~closes):
            m.d.sync += [full.eq(1), held.eq(token), open_.eq(self.pieces.waits & ~token.empty & (token.stop == 0))]
        with m.Elif(o.valid & o.ready):
            m.d.sync += full.eq(0)
        with m.If((error == 0) & (wrong != 0)):
            m.d.sync += error.eq(wrong)
        return m
