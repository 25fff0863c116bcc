"""Flatten: dimensions lo..hi become one; only stops change."""

from amaranth.hdl import Module, Mux

from ..beat import STOP_WIDTH, BeatLayout
from ..unit import Unit

__all__ = ["Flatten"]


class Flatten(Unit):
    """Hardware of ``step_lang.ops.flatten`` (SPEC section 2, Shape). Latency 0, one beat a cycle.

    ========== ===== ===================================================
    register   width meaning
    ========== ===== ===================================================
    lo, hi     4     dimensions merged, innermost 0; lo <= hi
    ========== ===== ===================================================
    """

    kind = "flatten"

    def __init__(self, layout: BeatLayout):
        self.layout = layout
        super().__init__([layout], [layout], cfg={"lo": STOP_WIDTH, "hi": STOP_WIDTH})

    @property
    def module_name(self) -> str:
        return f"flatten_{self.layout.key}"

    def elaborate(self, platform):
        m = Module()
        i, o, lo, hi = self.in0, self.out0, self.cfg.lo, self.cfg.hi
        stop = i.payload.stop
        merged = Mux(stop <= lo, stop, Mux(stop <= hi, lo, stop - (hi - lo)))
        m.d.comb += [o.payload.eq(i.payload), o.payload.stop.eq(merged)]
        # A bare stop that becomes level 0 closes nothing any more: it is swallowed.
        vanishes = i.payload.empty & ~i.payload.done & (merged == 0)
        m.d.comb += [o.valid.eq(i.valid & ~vanishes), i.ready.eq(o.ready | vanishes)]
        return m
