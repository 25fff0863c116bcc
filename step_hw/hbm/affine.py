"""Nested counters that walk an affine view: ``index = sum(i_k * stride_k)``, loop 0 innermost."""

from amaranth.hdl import Cat, Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["AFFINE_REGISTERS", "LOOPS", "AffineCounter"]

LOOPS = 6
"""Loops of a view: two of the physical grid and four of the author's shape."""

_WIDTH = 32

AFFINE_REGISTERS = {"dims": 3} | {f"{name}{k}": _WIDTH for name in ("count", "stride") for k in range(LOOPS)}
"""Configuration registers of a view: number of loops, their counts, their strides in elements (two's complement)."""


class AffineCounter(wiring.Component):
    """Position in an affine view; twin: ``sim.units.affine``.

    Members
    -------
    cfg : In, the registers of ``AFFINE_REGISTERS``
    step : In(1), go to the next position (after the last one, to the first)
    index : Out(signed 40), of the present position
    wraps : Out(3), how many innermost loops end here
    last : Out(1), all loops end here
    hollow : Out(1), the innermost loop has count 0: the position stands for an empty vector
    barren : Out(1), another loop has count 0: the whole view is empty
    """

    def __init__(self):
        super().__init__(
            {
                "cfg": In(wiring.Signature({name: Out(width) for name, width in AFFINE_REGISTERS.items()})),
                "step": In(1),
                "index": Out(signed(_WIDTH + 8)),
                "wraps": Out(3),
                "last": Out(1),
                "hollow": Out(1),
                "barren": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        used = Signal(LOOPS)
        ends = Signal(LOOPS)  # this loop is at its end
        ends_to = Signal(LOOPS)  # so are all loops inside it
        moved = Signal(signed(_WIDTH + 8))
        # Where the present round of each loop began; that of loop 0 is the index itself.
        starts = [Signal(signed(_WIDTH + 8), name=f"start{k}") for k in range(LOOPS)]
        rounds = [Signal(_WIDTH, name=f"round{k}") for k in range(LOOPS)]
        counts = [getattr(self.cfg, f"count{k}") for k in range(LOOPS)]
        strides = [getattr(self.cfg, f"stride{k}").as_signed() for k in range(LOOPS)]
        for k in range(LOOPS):
            m.d.comb += [
                used[k].eq(self.cfg.dims > k),
                ends[k].eq(~used[k] | (rounds[k] + 1 >= counts[k])),
                ends_to[k].eq(ends[: k + 1].all()),
            ]
        m.d.comb += [
            self.index.eq(starts[0]),
            self.wraps.eq(sum(ends_to[k] & used[k] for k in range(LOOPS))),
            self.last.eq(ends_to[LOOPS - 1] | self.barren),
            self.hollow.eq(used[0] & (counts[0] == 0)),
            self.barren.eq(Cat(used[k] & (counts[k] == 0) for k in range(1, LOOPS)).any()),
        ]
        for k in reversed(range(LOOPS)):
            with m.If(~ends[k]):  # the innermost loop that goes on
                m.d.comb += moved.eq(starts[k] + strides[k])
        with m.If(self.step):
            for k in range(LOOPS):
                begins = ends_to[k - 1] if k else 1  # all loops inside loop k begin anew
                with m.If(self.last):
                    m.d.sync += [rounds[k].eq(0), starts[k].eq(0)]
                with m.Elif(begins):
                    m.d.sync += [rounds[k].eq(rounds[k] + 1), starts[k].eq(moved)]
                    with m.If(ends[k]):
                        m.d.sync += rounds[k].eq(0)
        return m
