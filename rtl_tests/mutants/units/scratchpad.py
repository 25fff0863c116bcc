"""Faults of scratchpad."""

from ..fault import seeded

__all__ = ["UNIT"]

UNIT = seeded(
    "scratchpad",
    ["rtl_tests/test_scratchpad.py", "rtl_tests/test_bufferize.py", "rtl_tests/test_streamify.py",
     "rtl_tests/test_routed_buffers.py", "rtl_tests/test_virtual_buffers.py"],
    units_scratchpad=[
        ("a reference is of no generation", "generation[r].eq(generation[r] + 1)", "generation[r].eq(generation[r])"),
        (
            "off by one: a buffer is not freed at its last use",
            "(ended != 0) & (made <= ended)",
            "(ended != 0) & (made < ended)",
        ),
        ("a buffer without uses stays", "Mux(closed, w.uses == 0,", "Mux(closed, 0,", "routed_buffers"),
        (
            "what a router hands on is not counted",
            "Mux(p.change & (self._number(p.ref) == r), p.uses, 0)",
            "Mux(p.change & (self._number(p.ref) == r), 1, 0)",
            "routed_buffers",
        ),
        (
            "two readers that end together count as one",
            "sum(p.release & (self._number(p.ref) == r) for p in self.reads)",
            "Cat(p.release & (self._number(p.ref) == r) for p in self.reads).any()",
            "readers",
        ),
        (
            "pages land in another buffer's table",
            "table_write.addr.eq(Cat(w.number, ",
            "table_write.addr.eq(Cat(w.number + 1, ",
        ),
        ("off by one: a buffer keeps its last page", ">= length[now])", "> length[now])"),
        ("an empty buffer gives back a page", "give.eq(dead.any() & has_page)", "give.eq(dead.any())", "small_pages"),
        ("pages are never used again", "reuse.eq(level != 0)", "reuse.eq(0)"),
        (
            "missed back-pressure: a page where none is free",
            "w.page_free.eq(reuse | (fresh != shape.pages))",
            "w.page_free.eq(1)",
        ),
        ("free pages are counted wrongly", "level.eq(level + give - (w.take & reuse))", "level.eq(level + give)"),
        ("the same fresh page twice", "m.d.sync += fresh.eq(fresh + 1)", "m.d.sync += fresh.eq(fresh)"),
        (
            "the most pages are not noted",
            "m.d.sync += self.peak.eq(self.peak + 1)",
            "m.d.sync += self.peak.eq(self.peak)",
        ),
        (
            "pages in use are not counted down",
            "self.used.eq(self.used + w.take - give)",
            "self.used.eq(self.used + w.take)",
        ),
        (
            "swapped grant: who was served is first again",
            "k = (last + 1 + distance) % self.readers",
            "k = (last + distance) % self.readers",
            "several_readers",
        ),
        ("a reader that waits loses its frame", "p.frame.eq(Mux(fresh, read.data, kept))", "p.frame.eq(read.data)"),
        ("grants without turn", "p.grant.eq(p.request)]", "p.grant.eq(1)]"),
        (
            "no wrap where pages are no power of two",
            "Mux(pointer == self.shape.pages - 1, 0, pointer + 1)",
            "pointer + 1",
        ),
        ("a buffer begins at the page where the last ended", "walking.eq(0), walk_page.eq(0),", "walking.eq(0),"),
        ("the same free page twice", "m.d.sync += head.eq(self._next(head))", "m.d.sync += head.eq(head)"),
        ("a reader sees another page", "entry.addr.eq(Cat(number, ", "entry.addr.eq(Cat(number ^ 1, "),
        (
            "a reference is live whatever its generation",
            "& (generation[number] == p.ref[shape.number_bits:])",
            "",
        ),
        ("an ended use is not taken off", "uses[r].eq(made - ended)", "uses[r].eq(made)"),
        ("never alone, so never exhausted", "w.alone.eq(sum(taken) == 1)", "w.alone.eq(0)", "errors"),
        ("a place in the buffer goes back for a page", "push.data.eq(entry.data)", "push.data.eq(walk_page)"),
        ("a frame comes from where the head's buffer is", "with m.Switch(last):", "with m.Switch(owner):", "met"),
        ("a reader's use ends in the first scratchpad", "port.release.eq(one.release)]",
         "ports[0].release.eq(one.release)]", "met"),
        ("a router's uses are counted in the last scratchpad", "port.change.eq(one.change)]",
         "ports[-1].change.eq(one.change)]", "met"),
        ("a scratchpad sees whose the reference is", "port.ref.eq(one.ref[:shape.own_bits]), port.uses",
         "port.ref.eq(one.ref[1:]), port.uses", "met"),
    ],
)
