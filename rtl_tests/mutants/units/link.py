"""Faults of the link."""

from ..fault import seeded

__all__ = ["UNIT"]

UNIT = seeded(
    "link",
    ["rtl_tests/test_link.py"],
    link=[
        ("missed back-pressure: takes a beat when full", "w.ready.eq(level != self.depth)", "w.ready.eq(1)"),
        ("off by one: a place is never used", "w.ready.eq(level != self.depth)", "w.ready.eq(level != self.depth - 1)"),
        (
            "a full link takes what it gives at once",
            "w.ready.eq(level != self.depth)",
            "w.ready.eq((level != self.depth) | r.ready)",
        ),
        ("the last beat stays", "r.valid.eq(level != 0)", "r.valid.eq(level > 1)"),
        ("valid without a beat", "r.valid.eq(level != 0)", "r.valid.eq(1)"),
        ("level does not fall", "level.eq(level + write - read)", "level.eq(level + write)"),
        ("missed back-pressure: a beat is lost untaken", "read.eq(r.valid & r.ready)", "read.eq(r.valid)"),
        ("reads from an empty link", "read.eq(r.valid & r.ready)", "read.eq(r.ready)"),
        ("writes without a beat", "write.eq(w.valid & w.ready)", "write.eq(w.ready)"),
        ("a beat falls into the wrong place", "slots[tail].eq(w.payload)", "slots[head].eq(w.payload)"),
        ("reads the place written next", "read_port.addr.eq(head)", "read_port.addr.eq(tail)"),
        ("every beat leaves twice", "with m.If(read):", "with m.If(read & write):"),
        (
            "wraps one too early",
            "Mux(pointer == self.depth - 1, 0, pointer + 1)",
            "Mux(pointer == self.depth - 2, 0, pointer + 1)",
        ),
        ("no wrap where the depth is no power of two", "if self.depth & (self.depth - 1) == 0:", "if True:"),
        (
            "dropped stop",
            "m.d.comb += r.payload.eq(slots[head])",
            "m.d.comb += [r.payload.eq(slots[head]), r.payload.stop.eq(0)]",
        ),
    ],
)
