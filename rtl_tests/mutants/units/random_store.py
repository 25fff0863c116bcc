"""Faults of random_store, and of the requests that it shares with store."""

from ..fault import seeded

__all__ = ["UNIT"]

UNIT = seeded(
    "random_store",
    ["rtl_tests/test_random_store.py"],
    units_random_store=[
        ("list overflows", "room.eq(level != self.pending)", "room.eq(1)", "no_more"),
        (
            "acknowledged before it is in memory",
            "whole.eq((level != 0) & Cat(~targets[c] | (served[c] != 0) for c in range(channels)).all())",
            "whole.eq(level != 0)",
        ),
        (
            "one channel is enough",
            "whole.eq((level != 0) & Cat(~targets[c] | (served[c] != 0) for c in range(channels)).all())",
            "whole.eq((level != 0) & (first.empty | Cat(targets[c] & (served[c] != 0) for c in "
            "range(channels)).any()))",
        ),
        ("served not counted down", " - (leaves & targets[c]))", ")"),
        ("stop of the chunk kept", "Mux(first.done, 0, first.stop - self.cfg.inner)", "first.stop"),
        (
            "chunk closed late",
            "closes.eq(first.empty | (first.stop >= self.cfg.inner))",
            "closes.eq(first.empty | (first.stop > self.cfg.inner))",
        ),
        ("missed back-pressure", "leaves.eq(whole & (~closes | o.ready))", "leaves.eq(whole)"),
        # Not: done not compared. A beat that is empty and of no stop is done.
        ("ends at a bare stop", "m.If(moves & head.done)", "m.If(moves & head.empty)"),
        ("empty not compared", " & (head.empty == i.payload.empty)", "", "errors"),
        ("stops not compared", "(head.stop == i.payload.stop) & ", "", "errors"),
        ("bare stops overtake a full list", "(present & agree & head.empty & room)", "(present & agree & head.empty)",
         "no_more"),
        ("finished before memory has all", "self.finished.eq(ended & self.mem.idle)", "self.finished.eq(ended)"),
        (
            "group lost",
            "write.data.eq(Cat(head.stop, head.empty, head.done, group))",
            "write.data.eq(Cat(head.stop, head.empty, head.done))",
        ),
    ],
    **{"hbm/writing": [
        ("one address too many", "(index >= unit.cfg.limit)", "(index > unit.cfg.limit)", "errors"),
        ("channels stay taken", "taken.eq(Mux(accept, 0, taken | took))", "taken.eq(taken | took)"),
        ("channel asked again", "req.valid.eq(asked & targets[c] & ~taken[c])", "req.valid.eq(asked & targets[c])"),
        ("place in the burst lost", "req.payload.position.eq(index[:share_bits])", "req.payload.position.eq(0)"),
        (
            "accepted by the first channel",
            "accept.eq(asked & (taken | took | ~targets).all())",
            "accept.eq(asked & (taken | took).any())",
        ),
    ]},
)
