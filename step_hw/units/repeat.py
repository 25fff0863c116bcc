"""Repeat: every element n times, in a new innermost dimension."""

from amaranth.hdl import Module, Signal

from ..beat import STOP_WIDTH, BeatLayout
from ..unit import ErrorCode, Unit

__all__ = ["COUNT_WIDTH", "Repeat"]

COUNT_WIDTH = 32
"""Bits of a count register: a STeP count is a u32."""


class Repeat(Unit):
    """Hardware of ``step_lang.ops.repeat``. Latency 0, one output beat a cycle.

    ========== ===== ===================================================
    register   width meaning
    ========== ===== ===================================================
    n          32    copies of an element, n >= 1
    ========== ===== ===================================================

    The last copy carries s + 1; a bare stop s becomes s + 1. A stop that has no level above it raises ``STOP_RANGE``.
    """

    kind = "repeat"

    def __init__(self, layout: BeatLayout):
        self.layout = layout
        super().__init__([layout], [layout], cfg={"n": COUNT_WIDTH})

    @property
    def module_name(self) -> str:
        return f"repeat_{self.layout.key}"

    def elaborate(self, platform):
        m = Module()
        i, o = self.in0, self.out0
        made = Signal(COUNT_WIDTH)
        last = Signal()
        bad = Signal()
        m.d.comb += [
            last.eq(i.payload.empty | (made + 1 == self.cfg.n)),
            bad.eq(i.valid & (i.payload.stop == (1 << STOP_WIDTH) - 1)),
            o.payload.eq(i.payload),
            o.valid.eq(i.valid & ~bad),
            i.ready.eq(o.ready & last & ~bad),
            self.state.eq(made != 0),
        ]
        with m.If(~i.payload.done):
            m.d.comb += o.payload.stop.eq(0)
            with m.If(last):
                m.d.comb += o.payload.stop.eq(i.payload.stop + 1)
        with m.If(o.valid & o.ready):
            m.d.sync += made.eq(made + 1)
            with m.If(last):
                m.d.sync += made.eq(0)
        with m.If(bad):
            m.d.sync += self.error.eq(ErrorCode.STOP_RANGE)
        return m
