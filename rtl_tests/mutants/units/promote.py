"""Faults of promote."""

from ..fault import seeded

__all__ = ["UNIT"]

UNIT = seeded(
    "promote",
    ["rtl_tests/test_promote.py"],
    units_promote=[
        ("done waits for another beat", "waits.eq(~held.done & (held.stop == rank))", "waits.eq(held.stop == rank)"),
        (
            "waits at every stop",
            "waits.eq(~held.done & (held.stop == rank))",
            "waits.eq(~held.done & (held.stop != 0))",
        ),
        ("never waits", "waits.eq(~held.done & (held.stop == rank))", "waits.eq(0)"),
        ("no error for a stop above the rank", "bad.eq(i.valid & (i.payload.stop > rank))", "bad.eq(0)"),
        (
            "error at the highest stop",
            "bad.eq(i.valid & (i.payload.stop > rank))",
            "bad.eq(i.valid & (i.payload.stop >= rank) & ~i.payload.empty)",
        ),
        (
            "an element leaves before the next is seen",
            "o.valid.eq(full & (~waits | i.valid & ~bad))",
            "o.valid.eq(full)",
        ),
        (
            "missed back-pressure",
            "i.ready.eq(~bad & (~full | (o.valid & o.ready)))",
            "i.ready.eq(~bad & (~full | o.valid))",
        ),
        ("a bubble after every beat", "i.ready.eq(~bad & (~full | (o.valid & o.ready)))", "i.ready.eq(~bad & ~full)"),
        ("stop level one too low", "m.d.comb += o.payload.stop.eq(rank + 1)", "m.d.comb += o.payload.stop.eq(rank)"),
        ("every vector closes the new dimension", "with m.If(waits & i.payload.done):", "with m.If(waits):"),
        (
            "dropped stop",
            "m.d.sync += [full.eq(1), held.eq(i.payload)]",
            "m.d.sync += [full.eq(1), held.eq(i.payload), held.stop.eq(0)]",
        ),
        ("a beat leaves twice", "m.d.sync += full.eq(0)", "m.d.sync += full.eq(1)"),
        ("the held beat is lost while it waits", "with m.Elif(o.valid & o.ready):", "with m.Elif(o.ready):"),
    ],
)
