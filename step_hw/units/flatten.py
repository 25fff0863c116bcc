"""Flatten: dimensions lo..hi become one; only stops change."""

from amaranth.hdl import Module, Mux, Signal

from ..beat import STOP_WIDTH, BeatLayout
from ..unit import Unit

__all__ = ["Flatten"]


class Flatten(Unit):
    """Hardware of ``step_lang.ops.flatten`` (SPEC section 2, Shape). Latency 1, one beat a cycle.

    ========== ===== ===================================================
    register   width meaning
    ========== ===== ===================================================
    lo, hi     4     dimensions merged, innermost 0; lo <= hi
    rank       4     of the input stream
    ========== ===== ===================================================

    With lo = 0 level-1 vectors merge, and ``a S1 S2`` (a vector of one element, then an empty one) becomes ``a S1``:
    the bare stop closes a vector that is not empty any more, so it must travel with ``a``. Hence the register: an
    element whose stop vanished (``open``) leaves when the beat behind it has been seen. Where all dimensions become one
    (lo = 0, hi = rank) no stop is left that it could have to take: nothing is held, so that a loop may go through here.
    """

    kind = "flatten"

    def __init__(self, layout: BeatLayout):
        self.layout = layout
        super().__init__([layout], [layout], state_width=2,
                         cfg={"lo": STOP_WIDTH, "hi": STOP_WIDTH, "rank": STOP_WIDTH})

    @property
    def module_name(self) -> str:
        return f"flatten_{self.layout.key}"

    def elaborate(self, platform):
        m = Module()
        i, o, lo, hi = self.in0, self.out0, self.cfg.lo, self.cfg.hi
        held = Signal(self.layout, reset_less=True)
        full = Signal()
        open_ = Signal()
        merged = Signal(STOP_WIDTH)
        bare = Signal()
        vanishes = Signal()
        closes = Signal()
        stop = i.payload.stop
        m.d.comb += [
            merged.eq(Mux(stop <= lo, stop, Mux(stop <= hi, lo, stop - (hi - lo)))),
            bare.eq(i.valid & i.payload.empty & ~i.payload.done),
            # A bare stop that becomes level 0 closes nothing any more: it is swallowed.
            vanishes.eq(bare & (merged == 0)),
            # One that stays closes the vector of the open element: they leave as one beat.
            closes.eq(bare & (merged != 0) & full & open_),
            o.payload.eq(held),
            o.valid.eq(full & (~open_ | i.valid & ~vanishes)),
            i.ready.eq(vanishes | ~full | (o.valid & o.ready)),
            self.state.eq(full + (full & open_)),
        ]
        with m.If(closes):
            m.d.comb += o.payload.stop.eq(merged)
        with m.If(i.valid & i.ready & ~vanishes & ~closes):
            m.d.sync += [full.eq(1), held.eq(i.payload), held.stop.eq(merged)]
            m.d.sync += open_.eq(~i.payload.empty & (stop != 0) & (merged == 0) & (hi != self.cfg.rank))
        with m.Elif(o.valid & o.ready):
            m.d.sync += full.eq(0)
        return m
