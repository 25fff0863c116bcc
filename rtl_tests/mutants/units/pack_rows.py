"""Faults of pack_rows."""

from ..fault import seeded

__all__ = ["UNIT"]

UNIT = seeded(
    "pack_rows",
    ["rtl_tests/test_pack_rows.py"],
    units_pack_rows=[
        (
            "off by one: a block takes a row more",
            "last_row.eq(row + 1 == self.cfg.rows)",
            "last_row.eq(row == self.cfg.rows)",
        ),
        (
            "a group's end does not end the block",
            "completes.eq((accept & ends & (group | last_row))",
            "completes.eq((accept & ends & last_row)",
        ),
        ("done does not close the open block", "| (i.valid & beat.done & ~unfinished & (row != 0))", "| 0"),
        (
            "missed back-pressure: a full bank is overwritten",
            "passes & o.ready, ~full.bit_select(filling, 1))",
            "passes & o.ready, 1)",
        ),
        ("missed back-pressure: done is lost", "passes & o.ready, ~full", "passes, ~full"),
        ("done overtakes a bank", "(row == 0) & (full == 0))", "(row == 0))"),
        ("every row into the first", "Mux(accept & ~bare, 1 << row, 0)", "Mux(accept & ~bare, 1, 0)"),
        ("dropped stop", "closing[filling].eq(Mux(beat.done, 1, beat.stop))", "closing[filling].eq(1)"),
        (
            "off by one: a row too few",
            "counts[filling].eq(Mux(bare, 0, row + ~beat.done))",
            "counts[filling].eq(Mux(bare, 0, row))",
        ),
        (
            "invalid rows are not zero",
            "Mux(k < count, read.data.word_select(k, width), 0)",
            "read.data.word_select(k, width)",
        ),
        (
            "an empty group has a block without rows",
            "o.payload.rows.eq(count | (count == 0))",
            "o.payload.rows.eq(count)",
        ),
        (
            "missed back-pressure: tiles are skipped",
            "with m.If(o.valid & o.ready & ~passes):",
            "with m.If(o.valid & ~passes):",
        ),
        ("the other bank is never drained", "m.d.sync += draining.eq(~draining)", "m.d.sync += draining.eq(draining)"),
        (
            "a bank is freed with its first tile",
            "drained.eq(o.valid & o.ready & ~passes & last)",
            "drained.eq(o.valid & o.ready & ~passes)",
        ),
        ("a short row is no error", "~beat.done & (ends != (at + 1 == n))", "0"),
        ("the stream may end inside a row", "unfinished.eq(beat.empty & (at != 0))", "unfinished.eq(0)"),
        ("swapped banks", "read.addr.eq(Cat(sent, draining))", "read.addr.eq(Cat(sent, ~draining))"),
        (
            "an empty group is not zero",
            "counts[filling].eq(Mux(bare, 0, row + ~beat.done))",
            "counts[filling].eq(row + ~beat.done)",
        ),
        ("done overtakes an open block", "~unfinished & (row == 0) & (full == 0))", "~unfinished & (full == 0))"),
        ("rows are not counted anew", "filling.eq(~filling), row.eq(0),", "filling.eq(~filling),"),
        ("a group goes on behind done", "m.d.sync += inside.eq(0)", "m.d.sync += inside.eq(inside)"),
        ("a row without tiles is no error", "~group | inside", "~group"),
        ("every tile of the last row closes", "Mux(last, closing[draining], 0)", "closing[draining]"),
        ("done closes a group", "Mux(beat.done, 1, beat.stop)", "Mux(beat.done, 2, beat.stop)"),
        ("a bank fills only when both are empty", "~full.bit_select(filling, 1))", "(full == 0))", "rate"),
    ],
)
