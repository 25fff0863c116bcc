"""Faults of scan."""

from ..fault import seeded

__all__ = ["UNIT"]

UNIT = seeded(
    "scan",
    ["rtl_tests/test_scan.py"],
    units_scan=[
        (
            "off by one: the state is kept a level longer",
            "closing.eq(token.stop >= self.cfg.rank + self.cfg.inner)",
            "closing.eq(token.stop > self.cfg.rank + self.cfg.inner)",
        ),
        ("the state is not reset", "state.first.eq(~started)", "state.first.eq(0)"),
        ("the state is reset by every element", "state.first.eq(~started)", "state.first.eq(1)"),
        ("missed back-pressure: an element is folded again", "go.eq(en & valid & ~wrong)", "go.eq(valid & ~wrong)"),
        ("valid rows lost", "o.payload.rows.eq(out.rows)", "o.payload.rows.eq(1)"),
        ("bare stops are folded", "state.write.eq(go & ~token.empty)", "state.write.eq(go)"),
        ("a closed group goes on", "m.d.sync += started.eq(0)", "m.d.sync += started.eq(1)"),
        ("missed back-pressure: results are lost", "en.eq(~out_valid | o.ready)", "en.eq(1)"),
        ("valid waits for ready", "o.valid.eq(out_valid)", "o.valid.eq(out_valid & o.ready)"),
        (
            "missed back-pressure: another entry shows",
            "with m.If(en):\n            m.d.sync += out_index",
            "with m.If(1):\n            m.d.sync += out_index",
        ),
        ("a bare stop with data", " & (~out.empty).replicate(self.width)", ""),
        ("dropped stop", "o.payload.stop.eq(out.stop)", "o.payload.stop.eq(0)"),
        ("done lost", "o.payload.done.eq(out.done)", "o.payload.done.eq(0)"),
        (
            "an element counts once a step",
            "position.next.eq(go & ~token.empty & token.last)",
            "position.next.eq(go & ~token.empty)",
        ),
        ("a result for every step", "self._pipe(m, 1, en, go & token.last, token)", "self._pipe(m, 1, en, go, token)"),
    ],
)
