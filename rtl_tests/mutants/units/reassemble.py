"""Faults of reassemble."""

from ..fault import seeded

__all__ = ["UNIT"]

UNIT = seeded(
    "reassemble",
    ["rtl_tests/test_reassemble.py"],
    units_reassemble=[
        ("an input is served twice for a selector", "s.data[:self.n] & ~served, 0)", "s.data[:self.n], 0)"),
        ("the group's stop is one too low", "closing.eq(rank + 1 + s.stop)", "closing.eq(rank + s.stop)"),
        ("an input that has ended is waited for", "missing.eq(~arbiter.locked & (due & dones).any())", "missing.eq(0)"),
        ("the group closes after its first chunk", "left.eq(due & ~arbiter.chosen)", "left.eq(0)"),
        ("the group never closes", "left.eq(due & ~arbiter.chosen)", "left.eq(due)"),
        ("a chunk ends at any stop", "ends.eq(head.stop == rank)", "ends.eq(head.stop != 0)"),
        (
            "no error for a stop above the rank",
            "wrong.eq(head.done | (head.stop > rank) | last & closing[STOP_WIDTH:].any())",
            "wrong.eq(head.done)",
        ),
        (
            "does not wait for the inputs' done",
            "over.eq(selector.valid & s.done & (sent | fires) & (served | dones).all())",
            "over.eq(selector.valid & s.done & (sent | fires))",
        ),
        (
            "missed back-pressure: a chunk ends untaken",
            "arbiter.finish.eq(there & fires & ends)",
            "arbiter.finish.eq(there & ends)",
        ),
        (
            "missed back-pressure: a bare stop leaves untaken",
            "selector.ready.eq(over | fires & (hollow | there & last))",
            "selector.ready.eq(over | hollow | fires & there & last)",
        ),
        ("dropped stop", "o.payload.stop.eq(Mux(last, closing, head.stop))", "o.payload.stop.eq(head.stop)"),
        ("priority is not reset by done", "arbiter.clear.eq(over)", "arbiter.clear.eq(0)", "model"),
        (
            "who was served is forgotten",
            "m.d.sync += served.eq(served | arbiter.chosen)",
            "m.d.sync += served.eq(arbiter.chosen)",
        ),
        (
            "swapped grant",
            "i.ready.eq(arbiter.chosen[k] & there & fires",
            "i.ready.eq(arbiter.chosen[self.n - 1 - k] & there & fires",
        ),
        (
            "done leaves twice",
            "m.d.comb += [o.valid.eq(~sent), o.payload.empty.eq(1), o.payload.done.eq(1)]",
            "m.d.comb += [o.valid.eq(1), o.payload.empty.eq(1), o.payload.done.eq(1)]",
        ),
        ("a selector without a bit passes", "refused.eq(~s.empty & ~self.cfg.hollow | closing", "refused.eq(closing",
         "model"),
    ],
)
