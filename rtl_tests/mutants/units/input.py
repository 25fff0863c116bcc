"""Faults of input: the list of tokens and the counters of a load without reference."""

from ..fault import seeded

__all__ = ["UNIT"]

UNIT = seeded(
    "input",
    ["rtl_tests/test_hbm_views.py"],
    units_load=[
        ("bare stops take an element", "element + (entry.empty == 0)", "element + 1"),
        (
            "tokens fall into the wrong places",
            "write.addr.eq(self.token_address)",
            "write.addr.eq(self.token_address + 1)",
        ),
        (
            "empty and done swapped",
            "read.data[STOP_WIDTH], read.data[STOP_WIDTH + 1])",
            "read.data[STOP_WIDTH + 1], read.data[STOP_WIDTH])",
        ),
        ("counters instead of the list", "with m.If(~self.cfg.regular):", "with m.If(self.cfg.regular):"),
        ("missed back-pressure: done is lost", "with m.If(advance & tok.done):", "with m.If(tok.done):"),
        ("missed back-pressure: tokens are skipped", "step_list.eq(advance)", "step_list.eq(1)"),
        ("the stream's own dimension has a stop", "self.cfg.dims - 1, counter.wraps)", "self.cfg.dims, counter.wraps)"),
        (
            "an empty vector is not a stream without any",
            "counter.barren | (counter.hollow & (self.cfg.dims == 1))",
            "counter.barren",
        ),
        (
            "missed back-pressure: the last element is lost",
            "with m.If(nothing | (advance & counter.last)):",
            "with m.If(nothing | counter.last):",
        ),
        ("an empty stream has an element", "have.eq(~nothing)", "have.eq(1)"),
        ("done is an element", "[have.eq(1), tok.empty.eq(1), tok.done.eq(1)]", "[have.eq(1), tok.done.eq(1)]"),
        ("every element is the first", "element.eq(Mux(entry.done, 0,", "element.eq(Mux(entry.done | 1, 0,"),
    ],
)
