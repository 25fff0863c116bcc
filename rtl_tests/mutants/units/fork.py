"""Faults of fork."""

from ..fault import seeded

__all__ = ["UNIT"]

UNIT = seeded(
    "fork",
    ["rtl_tests/test_fork.py"],
    units_fork=[
        (
            "the input leaves with the quickest output",
            "i.ready.eq((taken | takes).all())",
            "i.ready.eq((taken | takes).any())",
        ),
        ("all outputs must take at once", "i.ready.eq((taken | takes).all())", "i.ready.eq(takes.all())"),
        ("missed back-pressure", "i.ready.eq((taken | takes).all())", "i.ready.eq(1)"),
        ("a beat is given again to who has it", "o.valid.eq(i.valid & ~taken[k])", "o.valid.eq(i.valid)"),
        ("outputs wait for the first", "o.valid.eq(i.valid & ~taken[k])", "o.valid.eq(i.valid & ~taken[0])"),
        ("swapped outputs", "o.valid.eq(i.valid & ~taken[k])", "o.valid.eq(i.valid & ~taken[self.n - 1 - k])"),
        ("who has taken is not forgotten", "m.d.sync += taken.eq(0)", "m.d.sync += taken.eq(taken)"),
        ("who took earlier is forgotten", "m.d.sync += taken.eq(taken | takes)", "m.d.sync += taken.eq(takes)"),
        ("who has taken is kept for the next beat", "with m.If(i.valid & ~i.ready):", "with m.If(i.valid):"),
        ("dropped stop", "[o.payload.eq(i.payload), ", "[o.payload.eq(i.payload), o.payload.stop.eq(0), "),
        ("valid rows lost", "[o.payload.eq(i.payload), ", "[o.payload.eq(i.payload), o.payload.rows.eq(1), "),
        ("done lost", "[o.payload.eq(i.payload), ", "[o.payload.eq(i.payload), o.payload.done.eq(0), "),
    ],
)
