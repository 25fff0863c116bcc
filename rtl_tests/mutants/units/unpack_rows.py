"""Faults of unpack_rows."""

from ..fault import seeded

__all__ = ["UNIT"]

UNIT = seeded(
    "unpack_rows",
    ["rtl_tests/test_unpack_rows.py"],
    units_unpack_rows=[
        (
            "off by one: a row too many",
            "last.eq(none | (last_tile & (row + 1 == count)))",
            "last.eq(none | (last_tile & (row == count)))",
        ),
        (
            "every row is the first",
            "o.payload.data.eq(read.data.word_select(row, self.row.data_width))",
            "o.payload.data.eq(read.data.word_select(0, self.row.data_width))",
        ),
        ("dropped stop", "closing[filling].eq(Mux(closes, beat.stop - 1, 1))", "closing[filling].eq(1)"),
        (
            "the vector's stop is one too high",
            "closing[filling].eq(Mux(closes, beat.stop - 1, 1))",
            "closing[filling].eq(Mux(closes, beat.stop, 1))",
        ),
        (
            "a last row leaves before its stop is known",
            "(present & (~last | known.bit_select(draining, 1) | coming))",
            "present",
        ),
        (
            "a last row does not wait for the last block",
            "known.bit_select(filling, 1).eq(closes)",
            "known.bit_select(filling, 1).eq(1)",
        ),
        ("a block without rows ends nothing", "closing[~filling].eq(beat.stop - 1)", "closing[~filling].eq(1)"),
        ("missed back-pressure: a full bank is overwritten", "~takes | ~full.bit_select(filling, 1))", "1)"),
        (
            "missed back-pressure: tiles are skipped",
            "leaves.eq(o.valid & o.ready & ~passes)",
            "leaves.eq(o.valid & ~passes)",
        ),
        ("done overtakes a bank", "passes.eq(good & beat.done & (full == 0))", "passes.eq(good & beat.done)"),
        (
            "blocks of uneven tiles are no error",
            "uneven.eq(~beat.empty & (at != 0) & (beat.rows != rows))",
            "uneven.eq(0)",
        ),
        ("a short block is no error", "~beat.done & (ends != (at + 1 == n))", "0"),
        ("the other bank is never drained", "m.d.sync += draining.eq(~draining)", "m.d.sync += draining.eq(draining)"),
        (
            "every block has a last row",
            "o.payload.stop.eq(Mux(last, closing[draining], last_tile))",
            "o.payload.stop.eq(Mux(last, closing[draining], 0))",
        ),
        (
            "a vector without rows is lost",
            "takes.eq(Mux(hollow, closes & ~filled, ~beat.done))",
            "takes.eq(Mux(hollow, 0, ~beat.done))",
        ),
        (
            "a row's tiles are the block's first",
            "read.addr.eq(Cat(sent, draining))",
            "read.addr.eq(Cat(sent & 0, draining))",
        ),
        (
            "a late stop goes to the other bank",
            "closing[~filling].eq(beat.stop - 1)",
            "closing[filling].eq(beat.stop - 1)",
        ),
        ("a last row is not released by done", "coming.eq(good & (begins | beat.done))", "coming.eq(good & begins)"),
        (
            "a last row waits until the next block is taken",
            "coming.eq(good & (begins | beat.done))",
            "coming.eq(good & beat.done)",
        ),
        (
            "a last row is released by a block without rows",
            "begins.eq(~beat.empty & ~hollow & (at == 0))",
            "begins.eq(~beat.empty & (at == 0))",
        ),
        ("the next block does not release a last row for good", "with m.If(begins):", "with m.If(begins & hollow):"),
        (
            "a block without rows takes a bank",
            "takes.eq(Mux(hollow, closes & ~filled, ~beat.done))",
            "takes.eq(~beat.done)",
        ),
        (
            "a vector's rows are forgotten at a block without",
            "filled.eq(~closes & (filled | ~hollow))",
            "filled.eq(~closes & ~hollow)",
        ),
        ("a vector's rows count behind done", "[begun.eq(0), filled.eq(0)]", "[begun.eq(0)]"),
        ("a vector goes on behind done", "[begun.eq(0), filled.eq(0)]", "[filled.eq(0)]"),
        ("rows are not counted anew", "row.eq(Mux(last, 0, row + 1))", "row.eq(row + 1)"),
        ("swapped banks", "read.addr.eq(Cat(sent, draining))", "read.addr.eq(Cat(sent, ~draining))"),
        ("a bank fills only when both are empty", "~takes | ~full.bit_select(filling, 1))", "~takes | (full == 0))",
         "rate"),
    ],
)
