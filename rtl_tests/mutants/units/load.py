"""Faults of load."""

from ..fault import seeded

__all__ = ["UNIT"]

UNIT = seeded(
    "load",
    ["rtl_tests/test_hbm_views.py"],
    units_load=[
        (
            "missed back-pressure: the window overflows",
            "offered.eq(have & (level != self.window) & (error == 0))",
            "offered.eq(have & (error == 0))",
        ),
        ("off by one: one position beyond is no error", "(index >= self.cfg.limit)", "(index > self.cfg.limit)",
         "errors"),
        ("a burst is asked for twice", "taken.eq(Mux(advance, 0, taken | took))", "taken.eq(0)"),
        (
            "goes on when one channel has its burst",
            "((taken | took | ~targets).all())",
            "((taken | took).any() | (targets == 0))",
        ),
        (
            "leaves before its bursts are there",
            "whole.eq((level != 0) & ((present | ~expected).all()))",
            "whole.eq(level != 0)",
        ),
        (
            "a bare stop waits for bursts",
            "expected.eq(Mux(first.empty, 0, self._targets(first.group)))",
            "expected.eq(self._targets(first.group))",
        ),
        (
            "missed back-pressure: the output is overwritten",
            "leaves.eq(whole & (~o.valid | o.ready))",
            "leaves.eq(whole)",
        ),
        (
            "dropped stop: the view's alone",
            "Mux(counter.last, ref.payload.stop + self.cfg.dims, counter.wraps)",
            "Mux(counter.last, self.cfg.dims, counter.wraps)",
        ),
        (
            "the reference leaves with the view's first token",
            "ref.ready.eq(advance & counter.last)",
            "ref.ready.eq(advance)",
        ),
        (
            "a bare stop keeps its level",
            "Mux(ref.payload.done, 0, ref.payload.stop + self.cfg.dims)",
            "Mux(ref.payload.done, 0, ref.payload.stop)",
        ),
        (
            "bursts of an element overlap the next",
            "(index >> (group_bits + share_bits)) * elements.bursts",
            "(index >> (group_bits + share_bits))",
        ),
        ("a bank of bursts never empties", "& ~(leaves.replicate(bursts) << (head * bursts))", ""),
        (
            "missed back-pressure: views go on",
            "counter.step.eq(advance),\n            ]\n\n    def _without",
            "counter.step.eq(have),\n            ]\n\n    def _without",
        ),
        ("the output shows a beat twice", "m.d.sync += o.valid.eq(0)", "m.d.sync += o.valid.eq(1)"),
        ("another slot is asked for", "req.payload.slot.eq(tail)", "req.payload.slot.eq(head)"),
    ],
)
