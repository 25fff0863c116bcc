"""Faults of partition."""

from ..fault import seeded

__all__ = ["UNIT"]

UNIT = seeded(
    "partition",
    ["rtl_tests/test_partition.py", "rtl_tests/test_routed_buffers.py"],
    units_partition=[
        (
            "uses of a reference are counted every cycle",
            "counted.eq(~goes & (counted | port.change))",
            "counted.eq(0)",
            "routed_buffers",
        ),
        (
            "uses of a reference that goes nowhere are not over",
            "port.change.eq(good & ~d.empty & ~counted)",
            "port.change.eq(good & ~d.empty & ~counted & to.any())",
            "routed_buffers",
        ),
        (
            "uses are counted when the last output has the reference",
            "port.change.eq(good & ~d.empty & ~counted)",
            "port.change.eq(goes & ~d.empty)",
            "routed_buffers",
        ),
        ("every output counts as one use", "Mux(to[k], uses, 0)", "Mux(to[k], 1, 0)", "routed_buffers"),
        ("a reference that was freed goes on", "freed.eq(~d.empty & ~port.live & ~counted)",
         "freed.eq(0)", "use_after_free"),
        (
            "off by one: a chunk ends a level later",
            "ends.eq(~d.done & (d.stop >= rank))",
            "ends.eq(~d.done & (d.stop > rank))",
        ),
        ("done inside a chunk is not seen", "unfinished.eq(d.done & begun)", "unfinished.eq(0)"),
        (
            "a bit beyond the outputs is not seen",
            "beyond.eq(~s.empty & s.data[self.n:].any() if self.bits > self.n else 0)",
            "beyond.eq(0)",
        ),
        ("stops are not compared", "(ends & (d.stop != s.stop + rank))", "(ends & 0)"),
        ("done is not compared", "differ.eq((d.done != s.done) | ~d.done & (", "differ.eq(~d.done & ("),
        (
            "the beat leaves with the quickest output",
            "goes.eq(good & (taken | takes | ~to).all())",
            "goes.eq(good & ((taken | takes).any() | (to == 0)))",
        ),
        ("missed back-pressure", "goes.eq(good & (taken | takes | ~to).all())", "goes.eq(good)"),
        ("the selector leaves with every beat", "selector.ready.eq(goes & (ends | d.done))", "selector.ready.eq(goes)"),
        ("a beat is given again to who has it", "o.valid.eq(good & to[k] & ~taken[k])", "o.valid.eq(good & to[k])"),
        ("stop above the chunk not lowered", "o.payload.stop.eq(Mux(ends, rank, d.stop))", "o.payload.stop.eq(d.stop)"),
        ("who has taken is kept for the next beat", "taken.eq(Mux(goes, 0, taken | takes))", "taken.eq(taken | takes)"),
        ("one output gets no done", "Mux(d.done, (1 << self.n) - 1,", "Mux(d.done, (1 << self.n) - 2,"),
        (
            "swapped outputs",
            "o.valid.eq(good & to[k] & ~taken[k])",
            "o.valid.eq(good & to[self.n - 1 - k] & ~taken[k])",
        ),
        ("a chunk of several beats is taken for complete", "begun.eq(~ends & ~d.done)", "begun.eq(0)"),
        (
            "a copy goes to one output only",
            "Mux(s.empty, 0, s.data[:self.n])",
            "Mux(s.empty, 0, s.data[:self.n] & -s.data[:self.n])",
        ),
    ],
)
