"""Promote: a new outermost dimension around the whole stream."""

from amaranth.hdl import Module, Signal

from ..beat import STOP_WIDTH, BeatLayout
from ..unit import ErrorCode, Unit

__all__ = ["Promote"]


class Promote(Unit):
    """Hardware of ``step_lang.ops.promote``. Latency 1, one beat a cycle.

    ========== ===== ===================================================
    register   width meaning
    ========== ===== ===================================================
    rank       4     rank of the input stream
    ========== ===== ===================================================

    A beat that may be the last (its stop is ``rank``) waits in the register until the beat behind it has been seen;
    before done it carries rank + 1. A stop above ``rank`` raises ``STOP_RANGE`` and is not accepted.
    """

    kind = "promote"

    def __init__(self, layout: BeatLayout):
        self.layout = layout
        super().__init__([layout], [layout], cfg={"rank": STOP_WIDTH}, state_width=2)

    @property
    def module_name(self) -> str:
        return f"promote_{self.layout.key}"

    def elaborate(self, platform):
        m = Module()
        i, o, rank = self.in0, self.out0, self.cfg.rank
        held = Signal(self.layout, reset_less=True)
        full = Signal()
        waits = Signal()
        bad = Signal()
        m.d.comb += [
            waits.eq(~held.done & (held.stop == rank)),
            bad.eq(i.valid & (i.payload.stop > rank)),
            o.payload.eq(held),
            o.valid.eq(full & (~waits | i.valid & ~bad)),
            i.ready.eq(~bad & (~full | (o.valid & o.ready))),
            self.state.eq(full + (full & waits)),
        ]
        with m.If(waits & i.payload.done):
            m.d.comb += o.payload.stop.eq(rank + 1)
        with m.If(i.valid & i.ready):
            m.d.sync += [full.eq(1), held.eq(i.payload)]
        with m.Elif(o.valid & o.ready):
            m.d.sync += full.eq(0)
        with m.If(bad):
            m.d.sync += self.error.eq(ErrorCode.STOP_RANGE)
        return m
