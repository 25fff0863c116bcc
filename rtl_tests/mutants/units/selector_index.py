"""Faults of selector_index, a function of map."""

from ..fault import seeded

__all__ = ["UNIT"]

UNIT = seeded(
    "selector_index",
    ["rtl_tests/test_selector_index.py"],
    **{"functions/selector_index": [
        ("none is taken for bit 0", "(selector == 0) | ", ""),
        ("several are taken", " | (selector & (selector - 1)).any()", ""),
        ("neighbours are taken", "(selector & (selector - 1)).any()", "(selector & (selector - 1))[2:].any()"),
        ("index bits swapped", "if k >> b & 1)", "if k >> (len(index) - 1 - b) & 1)"),
        ("last bit not encoded", "for k, bit in enumerate(selector) if", "for k, bit in enumerate(selector[:-1]) if"),
        ("result moves while stalled", "with m.If(self.en):", "with m.If(1):"),
        ("another code", "refuses = ErrorCode.SELECTOR", "refuses = ErrorCode.SHAPE"),
    ]},
    compute=[
        (
            "bare stops refused",
            "refused.eq(0 if wrong is None else ~head.empty & wrong)",
            "refused.eq(0 if wrong is None else wrong)",
        ),
        ("refused element leaves", "valid.eq(present & agree & ~refused)", "valid.eq(present & agree)"),
        ("no code", "m.d.sync += self.error.eq(refuses)", "pass"),
        ("accepted while stalled", "i.ready.eq(valid & en & token.last)", "i.ready.eq(valid & token.last)"),
    ],
)
