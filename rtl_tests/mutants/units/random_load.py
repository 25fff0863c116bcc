"""Faults of random_load, and of the window it shares with load."""

from ..fault import seeded

__all__ = ["UNIT"]

UNIT = seeded(
    "random_load",
    ["rtl_tests/test_random_load.py"],
    units_random_load=[
        ("dropped stop", "tok.stop.eq(address.payload.stop)", "tok.stop.eq(0)"),
        ("a bare stop loads", "tok.empty.eq(address.payload.empty)", "tok.empty.eq(address.payload.done)"),
        ("loads without an address", "have.eq(address.valid)", "have.eq(1)"),
        ("off by one: the next element", "index.eq(address.payload.data)", "index.eq(address.payload.data + 1)"),
        ("missed back-pressure: the address leaves", "address.ready.eq(advance)", "address.ready.eq(1)"),
        ("done lost", "tok.done.eq(address.payload.done)", "tok.done.eq(0)"),
    ],
    units_load=[
        (
            "missed back-pressure: the window overflows",
            "offered.eq(have & (level != self.window) & (error == 0))",
            "offered.eq(have & (error == 0))",
        ),
        ("off by one: one address beyond is no error", "(index >= self.cfg.limit)", "(index > self.cfg.limit)",
         "errors"),
        ("a base within a line is no error", " | self.cfg.base[:line_bits].any()", "", "errors"),
        ("a burst is asked for twice", "taken.eq(Mux(advance, 0, taken | took))", "taken.eq(0)"),
        (
            "leaves before its bursts are there",
            "whole.eq((level != 0) & ((present | ~expected).all()))",
            "whole.eq(level != 0)",
        ),
        (
            "missed back-pressure: the output is overwritten",
            "leaves.eq(whole & (~o.valid | o.ready))",
            "leaves.eq(whole)",
        ),
        ("a bank of bursts never empties", "& ~(leaves.replicate(bursts) << (head * bursts))", ""),
    ],
)
