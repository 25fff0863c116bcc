"""Faults of bufferize."""

from ..fault import seeded

__all__ = ["UNIT"]

UNIT = seeded(
    "bufferize",
    ["rtl_tests/test_bufferize.py", "rtl_tests/test_streamify.py", "rtl_tests/test_virtual_buffers.py"],
    units_bufferize=[
        (
            "dropped stop: the buffer's stays",
            "Mux(beat.done, 0, beat.stop - self.cfg.rank)",
            "Mux(beat.done, 0, beat.stop)",
        ),
        (
            "off by one: complete a level later",
            "~beat.done & (beat.stop >= self.cfg.rank)",
            "~beat.done & (beat.stop > self.cfg.rank)",
        ),
        ("missed back-pressure: does not wait for a page", "can = ~(needs_page & ~w.page_free) & ", "can = "),
        ("missed back-pressure: does not wait for a reference", " & ~(needs_ref & ~w.ref_free)\n", "\n"),
        ("off by one: the last element is not counted", "w.length.eq(count + fused)", "w.length.eq(count)"),
        (
            "missed back-pressure: a reference is lost",
            "i.ready.eq(good & (o.ready | ~(completes | beat.done)))",
            "i.ready.eq(good)",
        ),
        (
            "the count goes on in the next buffer",
            "m.d.sync += [open_.eq(0), count.eq(0), hollow.eq(0)]",
            "m.d.sync += [open_.eq(0), hollow.eq(0)]",
        ),
        ("stops are not stored", "w.frame.stop.eq(beat.stop)", "w.frame.stop.eq(0)"),
        ("one use, whoever reads", "w.uses.eq(self.cfg.uses)", "w.uses.eq(1)"),
        ("a page is forgotten", "m.d.sync += page.eq(w.page)", "m.d.sync += page.eq(0)"),
        (
            "a page's first element in the page before",
            "Cat(offset, Mux(needs_page, w.page, page))",
            "Cat(offset, page)",
        ),
        (
            "a stream may end inside a buffer",
            "unfinished = beat.done & (open_ | hollow)",
            "unfinished = beat.done & hollow",
        ),
        ("gives up where another buffer would give a page back", "~w.page_free & w.alone\n", "~w.page_free\n",
         "waits_are"),
        ("waits for ever for a page that nobody has", "exhausted = open_ & ", "exhausted = 0 & ", "errors"),
        ("an empty vector inside a buffer is stored", "(fused & hollow) | (bare & open_)", "(fused & hollow)"),
        ("valid rows are not stored", "w.frame.rows.eq(beat.rows)", "w.frame.rows.eq(1)"),
        ("exhausted by a buffer that has not begun", "exhausted = open_ & needs_page", "exhausted = needs_page"),
        ("one page a buffer", "needs_page = fused & (offset == 0)", "needs_page = fused & (count == 0)"),
        ("does not say whose the buffer is", "Cat(w.owner, whose)", "w.owner", "met"),
    ],
)
