"""Faults of map and of the join that all compute units share."""

from ..fault import seeded

__all__ = ["UNIT"]

UNIT = seeded(
    "map",
    ["rtl_tests/test_map.py"],
    units_map=[
        ("missed back-pressure", "en.eq(~o.valid | o.ready)", "en.eq(1)"),
        ("a bubble after every result", "en.eq(~o.valid | o.ready)", "en.eq(~o.valid)"),
        ("a result for every step", "o.valid.eq(last_valid & last.last)", "o.valid.eq(last_valid)"),
        ("a bare stop with data", " & (~last.empty).replicate(", " & (~last.done).replicate("),
        ("valid rows lost", "o.payload.rows.eq(last.rows)", "o.payload.rows.eq(1)"),
        ("dropped stop", "o.payload.stop.eq(last.stop)", "o.payload.stop.eq(0)"),
        ("bare stop not marked", "o.payload.empty.eq(last.empty)", "o.payload.empty.eq(last.done)"),
        ("done lost", "o.payload.done.eq(last.done)", "o.payload.done.eq(0)"),
        (
            "missed back-pressure: the datapath goes on alone",
            'self._connect(m, "path", self.path, en & moving, token.step)',
            'self._connect(m, "path", self.path, moving, token.step)',
        ),
        ("rows that are not valid are not zero", "result = masked(result, last.rows, self.out_type)", "pass",
         "add_masked"),
        (
            "rows are masked as those of the beat that enters are",
            "masked(result, last.rows, self.out_type)",
            "masked(result, token.rows, self.out_type)",
            "add_masked",
        ),
    ],
    compute=[
        ("disagreement is not seen", "agree.eq(agreement)", "agree.eq(1)", "misaligned"),
        ("an input leaves alone", "i.ready.eq(valid & en & token.last)", "i.ready.eq(en & token.last)"),
        (
            "missed back-pressure: the input leaves",
            "i.ready.eq(valid & en & token.last)",
            "i.ready.eq(valid & token.last)",
        ),
        (
            "steps are not counted anew",
            "m.d.sync += step.eq(Mux(token.last, 0, step + 1))",
            "m.d.sync += step.eq(Mux(token.last, step, step + 1))",
        ),
        (
            "missed back-pressure: steps go on",
            "with m.If(valid & en):\n                m.d.sync += step",
            "with m.If(valid):\n                m.d.sync += step",
        ),
        (
            "off by one: a step too few",
            "token.last.eq(head.empty | (step == interval - 1))",
            "token.last.eq(head.empty | (step == max(interval - 2, 0)))",
        ),
        ("stops are not compared", "(other.payload.stop == head.stop) & ", "", "misaligned"),
    ],
)
