"""Faults of flatten."""

from ..fault import seeded

__all__ = ["UNIT"]

UNIT = seeded(
    "flatten",
    ["rtl_tests/test_flatten.py"],
    units_flatten=[
        (
            "off by one: a level above hi falls with it",
            "Mux(stop <= hi, lo, stop - (hi - lo))",
            "Mux(stop <= hi + 1, lo, stop - (hi - lo))",
        ),
        ("stop above hi falls too far", "stop - (hi - lo)))),", "stop - hi))),"),
        ("a bare stop of level 0 stays", "vanishes.eq(bare & (merged == 0))", "vanishes.eq(0)"),
        (
            "a bare stop fuses with a closed vector",
            "closes.eq(bare & (merged != 0) & full & open_)",
            "closes.eq(bare & (merged != 0) & full)",
        ),
        (
            "an element leaves before its stop is known",
            "o.valid.eq(full & (~open_ | i.valid & ~vanishes))",
            "o.valid.eq(full)",
        ),
        (
            "an element leaves with a stop that vanishes",
            "o.valid.eq(full & (~open_ | i.valid & ~vanishes))",
            "o.valid.eq(full & (~open_ | i.valid))",
        ),
        (
            "missed back-pressure",
            "i.ready.eq(vanishes | ~full | (o.valid & o.ready))",
            "i.ready.eq(vanishes | ~full | o.valid)",
        ),
        ("stop not lowered", "held.eq(i.payload), held.stop.eq(merged)]", "held.eq(i.payload)]"),
        ("fused stop not lowered", "m.d.comb += o.payload.stop.eq(merged)", "m.d.comb += o.payload.stop.eq(stop)"),
        ("fused stop dropped", "m.d.comb += o.payload.stop.eq(merged)", "m.d.comb += o.payload.stop.eq(held.stop)"),
        ("an element never waits", "m.d.sync += open_.eq(~i.payload.empty & ", "m.d.sync += open_.eq(0 & "),
        (
            "an element without a stop waits too",
            "open_.eq(~i.payload.empty & (stop != 0) & ",
            "open_.eq(~i.payload.empty & ",
        ),
        ("an element waits although no stop is left", " & (hi != self.cfg.rank))", ")"),
        ("an element never waits below the highest rank", "(hi != self.cfg.rank)", "(hi == self.cfg.rank)"),
        ("rank off by one", "(hi != self.cfg.rank)", "(hi + 1 != self.cfg.rank)"),
        ("dimensions merged from 0 only are held", "(merged == 0) & (hi", "(merged == lo) & (hi"),
        ("done dropped", "m.If(i.valid & i.ready & ~vanishes & ~closes)",
         "m.If(i.valid & i.ready & ~vanishes & ~closes & ~i.payload.done)"),
        ("a beat leaves twice", "m.d.sync += full.eq(0)", "m.d.sync += full.eq(full)"),
    ],
)
