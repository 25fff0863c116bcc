"""Faults of store."""

from ..fault import seeded

__all__ = ["UNIT"]

UNIT = seeded(
    "store",
    ["rtl_tests/test_hbm_views.py", "rtl_tests/test_random_load.py"],
    units_store=[
        (
            "an element too many wraps",
            "overflow.eq(full | counter.barren | counter.hollow)",
            "overflow.eq(counter.barren | counter.hollow)",
            "errors",
        ),
        (
            "a view without positions takes an element",
            "overflow.eq(full | counter.barren | counter.hollow)",
            "overflow.eq(full)",
            "errors",
        ),
        ("finished before memory has all", "self.finished.eq(ended & self.mem.idle)", "self.finished.eq(ended)"),
        ("missed back-pressure: positions are skipped", "counter.step.eq(accept)", "counter.step.eq(element)"),
        ("full before the last element is written", "with m.If(accept & counter.last):", "with m.If(counter.last):"),
        (
            "bare stops are written",
            "element.eq(i.valid & ~i.payload.empty & (error == 0))",
            "element.eq(i.valid & ~i.payload.done & (error == 0))",
        ),
    ],
    **{"hbm/writing": [
        ("off by one: one position beyond is no error", "(index >= unit.cfg.limit)", "(index > unit.cfg.limit)",
         "errors"),
        ("a base within a line is no error", " | unit.cfg.base[:line_bits].any()", "", "errors"),
        (
            "channels that have their burst are left out of the next",
            "taken.eq(Mux(accept, 0, taken | took))",
            "taken.eq(taken | took)",
        ),
        ("a burst is written twice", "asked & targets[c] & ~taken[c])", "asked & targets[c])"),
        (
            "missed back-pressure: bursts are lost",
            "asked & (taken | took | ~targets).all())",
            "asked & ((taken | took) & targets).any())",
        ),
        (
            "every element at a burst's start",
            "req.payload.position.eq(index[:share_bits])",
            "req.payload.position.eq(0)",
        ),
        (
            "one group of channels for all",
            "port.memory.channels) << (group * port.elements.span)",
            "port.memory.channels)",
        ),
        (
            "bursts of an element overlap the next",
            "(index >> (group_bits + share_bits)) * bursts)",
            "(index >> (group_bits + share_bits)))",
        ),
    ]},
    **{"hbm/ports": [
        (
            "every channel gets the first burst",
            "element.word_select(q * span + channel % span, width)",
            "element.word_select(q * span, width)",
        ),
    ]},
)
