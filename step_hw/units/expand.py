"""Expand: a value for every element of a reference stream."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import Out

from ..beat import STOP_WIDTH, BeatLayout
from ..unit import ErrorCode, Unit
from .scratchpad import ScratchpadShape, UsePort, use_port

__all__ = ["Expand"]


class Expand(Unit):
    """Hardware of ``step_lang.ops.expand``: ``in0`` the value, ``in1`` the reference. Latency 0, one beat a cycle.

    Parameters
    ----------
    layout, ref_layout : BeatLayout
    shape : ScratchpadShape or None
        Where the values are references to buffers, that of the scratchpad they refer to.
    uses : int
        Then, uses that a reference has at the output. With each element that leaves the unit tells the scratchpad
        (``port``; ``port0, port1, ..`` where ``shape.owners`` are several) what becomes of the use that it holds:
        ``uses``, and one more while it keeps the value; none where the value leaves with a bare stop.

    ========== ===== ===================================================
    register   width meaning
    ========== ===== ===================================================
    b          4     inner dimensions of the reference that one value serves
    ========== ===== ===================================================

    Each reference beat makes one output beat with the reference's stop; one of stop >= b takes the value with it. The
    value's inner dimensions are 1, so its stop must then be the reference's. A value without an element can only face
    bare stops (both come from one empty dimension above b); a bare reference stop >= b > 0 takes a value of either
    kind. What disagrees raises ``MISALIGNED``, a value whose buffer was freed ``FREED``, and is not accepted.
    """

    kind = "expand"

    def __init__(self, layout: BeatLayout, ref_layout: BeatLayout, shape: ScratchpadShape | None = None,
                 uses: int = 0):
        self.layout = layout
        self.ref_layout = ref_layout
        self.shape = shape
        self.uses = uses
        if shape is not None and not 0 <= uses < (1 << shape.uses_bits) - 1:
            raise ValueError(f"a reference has fewer than {(1 << shape.uses_bits) - 1} uses, not {uses}")
        super().__init__([layout, ref_layout], [layout], cfg={"b": STOP_WIDTH},
                         extra={} if shape is None else {name: Out(UsePort(shape.own)) for name in shape.port_names})

    @property
    def module_name(self) -> str:
        name = f"expand_{self.layout.key}_{self.ref_layout.key}"
        return name if self.shape is None else f"{name}_{self.shape.router_key}_u{self.uses}"

    def elaborate(self, platform):
        m = Module()
        value, ref, o, b = self.in0, self.in1, self.out0, self.cfg.b
        v, r = value.payload, ref.payload
        present = Signal()
        pops = Signal()
        differ = Signal()
        good = present & ~differ
        if self.shape is not None:
            freed = Signal()   # a reference whose buffer was freed
            good &= ~freed
        m.d.comb += [
            present.eq(value.valid & ref.valid),
            pops.eq(r.done | (r.stop >= b)),
            # With b = 0 there is one value an element, so a bare stop must face a bare stop.
            differ.eq((v.done != r.done) | (v.empty & ~r.empty) | (pops & (v.stop != r.stop))
                      | ((b == 0) & r.empty & ~v.empty)),
            o.valid.eq(good),
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
        if self.shape is not None:
            # What has left is counted before anyone can end its use: a link takes a cycle.
            port = use_port(m, [getattr(self, name) for name in self.shape.port_names], self.shape)
            m.d.comb += [
                port.ref.eq(v.data), freed.eq(~v.empty & ~port.live),
                port.change.eq(o.valid & o.ready & ~v.empty & (pops | ~r.empty)),
                port.uses.eq(Mux(r.empty, 0, self.uses) + ~pops),
            ]
            with m.If(present & ~differ & freed):
                m.d.sync += self.error.eq(ErrorCode.FREED)
        return m
