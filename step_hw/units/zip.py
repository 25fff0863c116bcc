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
        The members; the output concatenates their data, first lowest. Its ``rows`` are those of the first of the
        tallest members.

    Inputs whose stop, empty or done differ raise ``MISALIGNED`` and are not accepted.
    """

    kind = "zip"

    def __init__(self, layouts: Sequence[BeatLayout]):
        if len(layouts) < 2:
            raise ValueError(f"a zip has at least two inputs, not {len(layouts)}")
        self.layouts = tuple(layouts)
        self.rows_from = max(range(len(layouts)), key=lambda k: (layouts[k].max_rows, -k))
        joint = BeatLayout(sum(layout.data_width for layout in layouts), layouts[self.rows_from].max_rows)
        super().__init__(self.layouts, [joint])

    @property
    def module_name(self) -> str:
        return "zip_" + "_".join(layout.key for layout in self.layouts)

    def elaborate(self, platform):
        m = Module()
        ins, o, first = self.ins, self.out0, self.in0.payload
        present, differ = Signal(), Signal()
        m.d.comb += [
            present.eq(Cat(i.valid for i in ins).all()),
            differ.eq(Cat(Cat(i.payload.stop, i.payload.empty, i.payload.done)
                          != Cat(first.stop, first.empty, first.done) for i in ins[1:]).any()),
            o.valid.eq(present & ~differ),
            o.payload.eq(first),
            o.payload.data.eq(Cat(i.payload.data for i in ins)),
            o.payload.rows.eq(ins[self.rows_from].payload.rows),
        ]
        m.d.comb += [i.ready.eq(o.valid & o.ready) for i in ins]
        with m.If(present & differ):
            m.d.sync += self.error.eq(ErrorCode.MISALIGNED)
        return m
