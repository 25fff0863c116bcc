"""Faults of trim_rows."""

from ..fault import seeded

__all__ = ["UNIT"]

UNIT = seeded(
    "trim_rows",
    ["rtl_tests/test_trim_rows.py"],
    units_trim_rows=[
        ("off by one: enough a row too late", "enough.eq(now <= d.rows)", "enough.eq(now < d.rows)"),
        ("keeps whole tiles", "keep.eq(Mux(enough, now, d.rows))", "keep.eq(d.rows)"),
        ("the count begins anew with every block", "now.eq(Mux(begun, left,", "now.eq(Mux(0, left,"),
        ("padding counts from the front", "cfg.total - c.data))", "c.data))"),
        ("rows left are not counted down", "left.eq(now - keep)", "left.eq(now)"),
        (
            "dropped stop: the last tile leaves before its closing stop is known",
            "holds.eq(~d.empty & ends & ~closes & enough & ~dropping)",
            "holds.eq(0)",
        ),
        ("what is dropped leaves", "emits.eq(Mux(dropping, closes, ~holds))", "emits.eq(~holds)"),
        ("missed back-pressure", "goes.eq(good & (~emits | o.ready))", "goes.eq(good)"),
        ("the count leaves with every tile", "counts.ready.eq(goes & (closes | d.done))", "counts.ready.eq(goes)"),
        (
            "the last row's rows are lost",
            "o.payload.rows.eq(Mux(dropping, held_rows,",
            "o.payload.rows.eq(Mux(dropping, 1,",
        ),
        (
            "rows beyond the count are not zero",
            "Cat(Mux(k < keep, d.data.word_select(k, width), 0)",
            "Cat(d.data.word_select(k, width)",
        ),
        ("too few rows are no error", "| (closes & ~enough)))", "))"),
        ("stops are not compared", "| (closes & (d.stop != c.stop + 2))", ""),
        ("drops the next chunk too", "m.d.sync += [begun.eq(0), dropping.eq(0)]", "m.d.sync += [begun.eq(0)]"),
        ("a count beyond the padded rows is no error", "((cfg.total != 0) & (c.data > cfg.total))", "0"),
        (
            "the rows left of one chunk are those of the next",
            "m.d.sync += [begun.eq(0), dropping.eq(0)]",
            "m.d.sync += dropping.eq(0)",
        ),
        ("off by one: a row too many is not zero", "Mux(k < keep,", "Mux(k <= keep,"),
        ("what is held is not what leaves", "Mux(dropping, held,", "Mux(0, held,"),
        ("what is dropped waits for the output", "goes.eq(good & (~emits | o.ready))", "goes.eq(good & o.ready)"),
        ("the count stays at done", "counts.ready.eq(goes & (closes | d.done))", "counts.ready.eq(goes & closes)"),
        ("done is not compared", "| (d.done != c.done)", ""),
        ("emptiness is not compared", "(d.empty != c.empty) |", ""),
        ("uneven tiles are no error", "| (~d.empty & within & (d.rows != height))", ""),
        ("a short block inside is no error", "| ((d.rows != cfg.rows) & ends & ~closes)", ""),
        ("too many rows are no error", "| (d.rows > cfg.rows)", ""),
        ("the stream may end inside a chunk", "d.empty & within | d.done & begun", "d.empty & within"),
        ("a block may end with a bare stop", "d.empty & within | d.done & begun", "d.done & within | d.done & begun"),
        ("a block without tiles is no error", "(begun | (d.stop < 3))", "(d.stop < 3)"),
    ],
)
