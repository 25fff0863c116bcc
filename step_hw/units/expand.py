"""Expand: a value for every element of a reference stream."""

from amaranth.hdl import Module, Signal

from ..beat import STOP_WIDTH, BeatLayout
from ..unit import ErrorCode, Unit

__all__ = ["Expand"]


class Expand(Unit):
    """Hardware of ``step_lang.ops.expand``: ``in0`` the value, ``in1`` the reference. Latency 0, one beat a cycle.

    ========== ===== ===================================================
    register   width meaning
    ========== ===== ===================================================
    b          4     inner dimensions of the reference that one value serves
    ========== ===== ===================================================

    Each reference beat makes one output beat with the reference's stop; one of stop >= b takes the value with it. The
    value's inner dimensions are 1, so its stop must then be the reference's. A value without an element can only face
    bare stops (both come from one empty dimension above b); a bare reference stop >= b > 0 takes a value of either
    kind. What disagrees raises ``MISALIGNED`` and is not accepted.
    """

    kind = "expand"

    def __init__(self, layout: BeatLayout, ref_layout: BeatLayout):
        self.layout = layout
        self.ref_layout = ref_layout
        super().__init__([layout, ref_layout], [layout], cfg={"b": STOP_WIDTH})

    @property
    def module_name(self) -> str:
        return f"expand_{self.layout.key}_{self.ref_layout.key}"

    def elaborate(self, platform):
        m = Module()
        value, ref, o, b = self.in0, self.in1, self.out0, self.cfg.b
        v, r = value.payload, ref.payload
        present = Signal()
        pops = Signal()
        differ = Signal()
        m.d.comb += [
            present.eq(value.valid & ref.valid),
            pops.eq(r.done | (r.stop >= b)),
            # With b = 0 there is one value an element, so a bare stop must face a bare stop.
            differ.eq((v.done != r.done) | (v.empty & ~r.empty) | (pops & (v.stop != r.stop))
                      | ((b == 0) & r.empty & ~v.empty)),
            o.valid.eq(present & ~differ),
            ref.ready.eq(o.valid & o.ready),
            value.ready.eq(o.valid & o.ready & pops),
            o.payload.stop.eq(r.stop),
            o.payload.empty.eq(r.empty),
            o.payload.done.eq(r.done),
        ]
        with m.If(~r.empty):
            m.d.comb += [o.payload.data.eq(v.data), o.payload.rows.eq(v.rows)]
        with m.If(present & differ):
            m.d.sync += self.error.eq(ErrorCode.MISALIGNED)
        return m
