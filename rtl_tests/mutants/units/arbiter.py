"""Faults of the arbiter that reassemble and eager_merge share."""

from ..fault import seeded

__all__ = ["UNIT"]

UNIT = seeded(
    "arbiter",
    ["rtl_tests/test_eager_merge.py", "rtl_tests/test_reassemble.py"],
    arbiter=[
        ("fixed priority", "with m.If(later.any()):", "with m.If(0):"),
        ("the input served last is first again", "first.eq(self.turn + 1)]", "first.eq(self.turn)]"),
        ("one input is skipped", "first.eq(self.turn + 1)]", "first.eq(self.turn + 2)]"),
        (
            "no wrap behind the last input",
            "m.d.sync += first.eq(0)\n        with m.If(self.finish):",
            "m.d.sync += first.eq(n - 1)\n        with m.If(self.finish):",
        ),
        ("priority is not reset at the end", "with m.If(self.clear):", "with m.If(0):"),
        (
            "grants while a chunk is served",
            "self.granted.eq(~self.locked & waiting.any())",
            "self.granted.eq(waiting.any())",
        ),
        ("a bubble before every chunk", "self.serving.eq(self.locked | self.granted)", "self.serving.eq(self.locked)",
         "rate"),
        ("another input goes on with the chunk", "current.eq(self.turn)", "current.eq(first)"),
        ("a chunk never ends", "m.d.sync += self.locked.eq(0)", "m.d.sync += self.locked.eq(1)"),
        ("highest input first", "for k in reversed(range(n)):", "for k in range(n):"),
        ("search begins one later", "(Const(-1, n) << first)[:n]", "(Const(-2, n) << first)[:n]"),
        ("nobody served counts as input 0", "self.serving & (self.turn == k)", "(self.turn == k)"),
        (
            "a grant is not kept",
            "m.d.sync += [self.locked.eq(1), ",
            "m.d.sync += [self.locked.eq(~self.locked & ~waiting[0]), ",
        ),
    ],
)
