"""Faults of eager_merge."""

from ..fault import seeded

__all__ = ["UNIT"]

UNIT = seeded(
    "eager_merge",
    ["rtl_tests/test_eager_merge.py"],
    units_eager_merge=[
        (
            "done when the first input is",
            "ended.eq(~arbiter.locked & dones.all())",
            "ended.eq(~arbiter.locked & dones.any())",
        ),
        ("a chunk ends at any stop", "ends.eq(head.stop == rank)", "ends.eq(head.stop != 0)"),
        ("missed back-pressure: data", "has_data.eq(taken | o.valid & o.ready)", "has_data.eq(taken | o.valid)"),
        (
            "missed back-pressure: selector",
            "has_name.eq(named | name.valid & name.ready)",
            "has_name.eq(named | name.valid)",
        ),
        (
            "does not wait for the selector to be taken",
            "accept.eq(there & has_data & (has_name | ~ends))",
            "accept.eq(there & has_data)",
        ),
        (
            "waits for the selector at every beat",
            "accept.eq(there & has_data & (has_name | ~ends))",
            "accept.eq(there & has_data & has_name)",
            "66_inputs",
        ),
        ("swapped selector", "name.payload.data.eq(arbiter.chosen)", "name.payload.data.eq(arbiter.chosen[::-1])"),
        ("a beat leaves twice", "taken.eq(has_data & ~accept & ~over)", "taken.eq(0)"),
        (
            "a selector for every beat",
            "named.eq(has_name & ~arbiter.finish & ~over & int(self.selector))",
            "named.eq(0)",
        ),
        ("priority is not reset by done", "arbiter.clear.eq(over)", "arbiter.clear.eq(0)"),
        ("an input that has ended is served", "ChunkArbiter(m, present & ~dones)", "ChunkArbiter(m, present)"),
        ("no error for a stop above the rank", "wrong.eq(head.done | (head.stop > rank))", "wrong.eq(head.done)"),
        ("done with rows", "name.payload.rows.eq(~ended)", "name.payload.rows.eq(1)"),
        (
            "done of the inputs stays",
            "i.ready.eq(over | accept & arbiter.chosen[k])",
            "i.ready.eq(accept & arbiter.chosen[k])",
        ),
        (
            "swapped grant",
            "i.ready.eq(over | accept & arbiter.chosen[k])",
            "i.ready.eq(over | accept & arbiter.chosen[self.n - 1 - k])",
        ),
        ("a chunk ends untaken", "arbiter.finish.eq(accept & ends)", "arbiter.finish.eq(there & ends)"),
    ],
)
