"""Faults of zip."""

from ..fault import seeded

__all__ = ["UNIT"]

UNIT = seeded(
    "zip",
    ["rtl_tests/test_zip.py"],
    units_zip=[
        (
            "does not wait for all inputs",
            "present.eq(Cat(i.valid for i in ins).all())",
            "present.eq(Cat(i.valid for i in ins).any())",
        ),
        (
            "does not wait for the last input",
            "present.eq(Cat(i.valid for i in ins).all())",
            "present.eq(Cat(i.valid for i in ins[:-1]).all())",
        ),
        (
            "disagreement is not seen",
            "!= Cat(first.stop, first.empty, first.done) for i in ins[1:]).any())",
            "!= Cat(first.stop, first.empty, first.done) for i in ins[1:]).all())",
        ),
        (
            "only the first input is compared",
            "first.done) for i in ins[1:]).any())",
            "first.done) for i in ins[:1]).any())",
        ),
        (
            "uneven rows are not seen",
            "uneven.eq(Cat(t.rows != tallest[0].rows for t in tallest[1:]).any())",
            "uneven.eq(0)",
        ),
        ("goes on after an error", "o.valid.eq(present & ~differ & ~uneven)", "o.valid.eq(present & ~uneven)"),
        (
            "swapped members",
            "o.payload.data.eq(Cat(i.payload.data for i in ins))",
            "o.payload.data.eq(Cat(i.payload.data for i in reversed(ins)))",
        ),
        (
            "rows of the first member, not the tallest",
            "o.payload.rows.eq(tallest[0].rows)",
            "o.payload.rows.eq(first.rows)",
        ),
        ("dropped stop", "o.payload.stop.eq(first.stop)", "o.payload.stop.eq(0)"),
        ("missed back-pressure", "[i.ready.eq(o.valid & o.ready) for i in ins]", "[i.ready.eq(o.valid) for i in ins]"),
        ("an input leaves alone", "[i.ready.eq(o.valid & o.ready) for i in ins]", "[i.ready.eq(o.ready) for i in ins]"),
        ("done lost", "o.payload.done.eq(first.done)", "o.payload.done.eq(0)"),
        ("bare stop not marked", "o.payload.empty.eq(first.empty)", "o.payload.empty.eq(first.done)"),
        (
            "another error code",
            "m.d.sync += self.error.eq(ErrorCode.MISALIGNED)",
            "m.d.sync += self.error.eq(ErrorCode.SHAPE)",
        ),
    ],
)
