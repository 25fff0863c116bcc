"""Faults of repeat."""

from ..fault import seeded

__all__ = ["UNIT"]

UNIT = seeded(
    "repeat",
    ["rtl_tests/test_repeat.py"],
    units_repeat=[
        ("off by one: a copy too many", "(made + 1 == self.cfg.n)", "(made == self.cfg.n)"),
        ("a bare stop is repeated too", "last.eq(i.payload.empty | (made", "last.eq(i.payload.done | (made"),
        (
            "no error for a stop that does not fit",
            "bad.eq(i.valid & (i.payload.stop == (1 << STOP_WIDTH) - 1))",
            "bad.eq(0)",
        ),
        (
            "missed back-pressure: the input leaves untaken",
            "i.ready.eq(o.ready & last & ~bad)",
            "i.ready.eq(last & ~bad)",
        ),
        ("stop level one too low", "o.payload.stop.eq(i.payload.stop + 1)", "o.payload.stop.eq(i.payload.stop)"),
        ("done carries a stop", "with m.If(~i.payload.done):", "with m.If(1):"),
        ("stop on every copy", "m.d.comb += o.payload.stop.eq(0)", "m.d.comb += o.payload.stop.eq(i.payload.stop)"),
        ("count not reset", "m.d.sync += made.eq(0)", "m.d.sync += made.eq(made + 1)"),
        ("missed back-pressure: copies count untaken", "with m.If(o.valid & o.ready):", "with m.If(o.valid):"),
        ("copies count without an element", "with m.If(o.valid & o.ready):", "with m.If(o.ready):"),
        ("valid waits for ready", "o.valid.eq(i.valid & ~bad)", "o.valid.eq(i.valid & ~bad & o.ready)"),
        ("valid rows lost", "o.payload.eq(i.payload),", "o.payload.eq(i.payload), o.payload.rows.eq(1),"),
    ],
)
