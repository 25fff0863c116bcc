"""Zip: streams of one shape become a stream of tuples."""

from collections.abc import Sequence

from amaranth.hdl import Cat, Module, Signal

from ..beat import BeatLayout
from ..unit import ErrorCode, Unit

__all__ = ["Zip"]


class Zip(Unit):
    """Hardware of ``step_lang.ops.zip``. Latency 0, one tuple a cycle.

    Parameters
    ----------
    layouts : at least two :class:`BeatLayout`
        The members; the output concatenates their data, first lowest. Its ``rows`` are those of the tallest members.

    Inputs whose stop, empty or done differ raise ``MISALIGNED``, equally tall members of different rows (a tuple has
    one count) raise ``SHAPE``; neither is accepted.
    """

    kind = "zip"

    def __init__(self, layouts: Sequence[BeatLayout]):
        if len(layouts) < 2:
            raise ValueError(f"a zip has at least two inputs, not {len(layouts)}")
        self.layouts = tuple(layouts)
        height = max(layout.max_rows for layout in layouts)
        self.tallest = [k for k, layout in enumerate(layouts) if layout.max_rows == height]
        joint = BeatLayout(sum(layout.data_width for layout in layouts), height)
        super().__init__(self.layouts, [joint])

    @property
    def module_name(self) -> str:
        return "zip_" + "_".join(layout.key for layout in self.layouts)

    def elaborate(self, platform):
        m = Module()
        ins, o, first = self.ins, self.out0, self.in0.payload
        tallest = [ins[k].payload for k in self.tallest]
        present = Signal()
        differ = Signal()
        uneven = Signal()
        m.d.comb += [
            present.eq(Cat(i.valid for i in ins).all()),
            differ.eq(Cat(Cat(i.payload.stop, i.payload.empty, i.payload.done)
                          != Cat(first.stop, first.empty, first.done) for i in ins[1:]).any()),
            uneven.eq(Cat(t.rows != tallest[0].rows for t in tallest[1:]).any()),
            o.valid.eq(present & ~differ & ~uneven),
            o.payload.data.eq(Cat(i.payload.data for i in ins)),
            o.payload.rows.eq(tallest[0].rows),
            o.payload.stop.eq(first.stop),
            o.payload.empty.eq(first.empty),
            o.payload.done.eq(first.done),
        ]
        m.d.comb += [i.ready.eq(o.valid & o.ready) for i in ins]
        with m.If(present & differ):
            m.d.sync += self.error.eq(ErrorCode.MISALIGNED)
        with m.Elif(present & uneven):
            m.d.sync += self.error.eq(ErrorCode.SHAPE)
        return m
