"""Fork: a stream used by several consumers."""

from amaranth.hdl import Cat, Module, Signal

from ..beat import BeatLayout
from ..unit import Unit

__all__ = ["Fork"]


class Fork(Unit):
    """Eager broadcast: each output takes the beat when it can; the input leaves when all have. Latency 0, one beat a
    cycle."""

    kind = "fork"

    def __init__(self, layout: BeatLayout, n: int):
        if n < 2:
            raise ValueError(f"a fork has at least two outputs, not {n}")
        self.layout = layout
        self.n = n
        super().__init__([layout], [layout] * n, state_width=n)

    @property
    def module_name(self) -> str:
        return f"fork{self.n}_{self.layout.key}"

    def elaborate(self, platform):
        m = Module()
        i, outs = self.in0, self.outs
        taken = Signal(self.n)
        takes = Cat(o.valid & o.ready for o in outs)
        m.d.comb += [i.ready.eq((taken | takes).all()), self.state.eq(taken)]
        for k, o in enumerate(outs):
            m.d.comb += [o.payload.eq(i.payload), o.valid.eq(i.valid & ~taken[k])]
        m.d.sync += taken.eq(0)
        with m.If(i.valid & ~i.ready):
            m.d.sync += taken.eq(taken | takes)
        return m
