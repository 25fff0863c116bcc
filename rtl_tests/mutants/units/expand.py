"""Faults of expand."""

from ..fault import seeded

__all__ = ["UNIT"]

UNIT = seeded(
    "expand",
    ["rtl_tests/test_expand.py", "rtl_tests/test_virtual_buffers.py"],
    units_expand=[
        (
            "off by one: the value stays a vector too long",
            "pops.eq(r.done | (r.stop >= b))",
            "pops.eq(r.done | (r.stop > b))",
        ),
        ("done of the values stays", "pops.eq(r.done | (r.stop >= b))", "pops.eq(r.stop >= b)"),
        ("stops are not compared", " | (pops & (v.stop != r.stop))", ""),
        ("a missing value is not seen", " | (v.empty & ~r.empty)", ""),
        ("done is not compared", "(v.done != r.done) | ", ""),
        (
            "missed back-pressure: the reference leaves untaken",
            "ref.ready.eq(o.valid & o.ready)",
            "ref.ready.eq(o.valid)",
        ),
        (
            "missed back-pressure: the value leaves untaken",
            "value.ready.eq(o.valid & o.ready & pops)",
            "value.ready.eq(o.valid & pops)",
        ),
        (
            "the value leaves with every reference element",
            "value.ready.eq(o.valid & o.ready & pops)",
            "value.ready.eq(o.valid & o.ready)",
        ),
        ("the value's stop instead of the reference's", "o.payload.stop.eq(r.stop)", "o.payload.stop.eq(v.stop)"),
        ("a bare stop with data", "with m.If(~r.empty):", "with m.If(~r.done):"),
        ("valid rows lost", "o.payload.rows.eq(v.rows)", "o.payload.rows.eq(1)"),
        ("does not wait for a value", "present.eq(value.valid & ref.valid)", "present.eq(ref.valid)"),
        ("bare stop not marked", "o.payload.empty.eq(r.empty)", "o.payload.empty.eq(r.done)"),
        ("goes on after an error", "good = present & ~differ", "good = present"),
        (
            "the value's own use is over with its first copy",
            "port.uses.eq(Mux(r.empty, 0, self.uses) + ~pops)",
            "port.uses.eq(Mux(r.empty, 0, self.uses))",
            "copied",
        ),
        ("a copy makes one use, whoever reads", "Mux(r.empty, 0, self.uses)", "Mux(r.empty, 0, 1)", "copied"),
        ("a buffer without copies is never freed", "~v.empty & (pops | ~r.empty)", "~v.empty & ~r.empty", "copied"),
        ("counted while it waits", "port.change.eq(o.valid & o.ready", "port.change.eq(o.valid", "copied"),
        ("a reference that was freed goes on", "freed.eq(~v.empty & ~port.live)", "freed.eq(0)", "freed"),
    ],
)
