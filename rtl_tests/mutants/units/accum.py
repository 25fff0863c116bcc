"""Faults of accum."""

from ..fault import seeded

__all__ = ["UNIT"]

UNIT = seeded(
    "accum",
    ["rtl_tests/test_accum.py"],
    units_accum=[
        (
            "the drain's size follows the next fold",
            "drain.close.eq(drain.index == drain_size)",
            "drain.close.eq(drain.index == size)",
        ),
        (
            "a tensor that closes at once has the last one's size",
            "drain_size.eq(Mux(element, position.index, size))",
            "drain_size.eq(size)",
        ),
        (
            "an empty group of a hollow fold leaves init",
            "drain_bare.eq(token.empty & ~token.done & ~started & self.cfg.hollow)",
            "drain_bare.eq(0)",
        ),
        (
            "missed back-pressure: a smaller tensor overtakes the drain",
            "(free | ~(closing | token.done)) & (passed",
            "(free | ~((closing & ~element) | token.done)) & (passed",
        ),
        (
            "tensors of other sizes are no error",
            "(is_open & (position.last != (position.index == size)) | differs)",
            "differs",
            "errors",
        ),
        (
            "an empty group of an open state leaves init",
            "Mux(self.cfg.hollow, token.stop == rank, is_open)",
            "Mux(self.cfg.hollow, token.stop == rank, 0)",
            "errors",
        ),
        ("invalid rows are not zero", "entry = masked(entry, entry_rows, self.out_type)", "entry = entry | 0",
         "masked"),
        ("dropped stop: leaves with the fold's", "drain_stop.eq(token.stop - rank),", "drain_stop.eq(token.stop),"),
        (
            "missed back-pressure: what closes overtakes the drain",
            "free.eq(~draining | (drain_last & o.ready)),",
            "free.eq(1),",
        ),
        (
            "an entry is overwritten before it has left",
            "passed.eq(~draining | (drain.index > position.index) | ((drain.index == position.index) & o.ready)),",
            "passed.eq(1),",
        ),
        (
            "missed back-pressure: the entry at the output is overwritten",
            "((drain.index == position.index) & o.ready)",
            "(drain.index == position.index)",
        ),
        ("an entry waits a cycle too long", "| ((drain.index == position.index) & o.ready)),", "),", "chased"),
        ("the state is not reset", "state.first.eq(~started),", "state.first.eq(0),"),
        ("the state is reset by every element", "state.first.eq(~started),", "state.first.eq(1),"),
        ("an empty group leaves the last state", "drain_init.eq(token.empty & ~started),", "drain_init.eq(0),"),
        (
            "a bare stop leaves init though a fold has begun",
            "drain_init.eq(token.empty & ~started),",
            "drain_init.eq(token.empty),",
        ),
        ("done leaves as an element", "drain_done.eq(token.done),", "drain_done.eq(0),"),
        (
            "missed back-pressure: the drain goes on untaken",
            "drain.next.eq(draining & o.ready & ~drain_done",
            "drain.next.eq(draining & ~drain_done",
        ),
        (
            "missed back-pressure: the drain ends untaken",
            "with m.Elif(draining & o.ready & drain_last):",
            "with m.Elif(draining & drain_last):",
        ),
        (
            "off by one: a fold closes a level later",
            "closing.eq(token.stop >= rank + inner),",
            "closing.eq(token.stop > rank + inner),",
        ),
        (
            "inner stops dropped",
            "o.payload.stop.eq(Mux(drain.last, drain_stop, drain.stop)),",
            "o.payload.stop.eq(Mux(drain.last, drain_stop, 0)),",
        ),
        ("every step writes an element twice", "complete.eq(valid & go & token.last),", "complete.eq(valid & go),"),
        (
            "a hollow fold drops the state behind which an empty vector follows",
            "drain_bare.eq(token.empty & ~token.done & ~started & self.cfg.hollow)",
            "drain_bare.eq(token.empty & ~token.done & self.cfg.hollow)",
        ),
        (
            "a bare stop that closes an open fold drains one entry",
            "drain_size.eq(Mux(element, position.index, size))",
            "drain_size.eq(position.index)",
        ),
        (
            "a hollow group that leaves no stop is no error",
            "Mux(self.cfg.hollow, token.stop == rank, is_open)",
            "Mux(self.cfg.hollow, 0, is_open)",
            "errors",
        ),
        ("init of dynamic rows has all rows", "1 if self.masked else self.max_rows", "self.max_rows", "masked"),
        (
            "only the first entry starts anew",
            "state.first.eq(~started),",
            "state.first.eq(~started & (position.index == 0)),",
        ),
        ("bare stops are folded", "state.write.eq(valid & go & element),", "state.write.eq(valid & go),"),
    ],
    compute=[
        ("off by one: a row too many counts as valid", "(rows > i)", "(rows >= i)", "masked"),
        (
            "tiles of other rows are no error",
            "self.differs.eq(rows[self.index] != self.rows)",
            "self.differs.eq(0)",
            "masked",
        ),
        (
            "an open matrix never ends",
            "more & ~((size == 0) & self.close)",
            "more & ~((size == 0) & self.close & (self.inner != 2))",
        ),
        ("valid rows of another entry", "self.read_rows.eq(rows[self.read_index])", "self.read_rows.eq(rows[0])",
         "masked"),
        (
            "more entries than there are is no error",
            "self.over.eq((self.index == self.entries - 1) & ~self.last)",
            "self.over.eq(0)",
            "errors",
        ),
        (
            "off by one: a vector of the state is one longer",
            "self.index.eq(Mux(self.last, 0, self.index + 1)), i0.eq(Mux(ends == 0, i0 + 1, 0))",
            "self.index.eq(Mux(self.last, 0, self.index + 1)), i0.eq(Mux(ends == 0, i0 + 1, 1))",
        ),
        (
            "reads another entry than it writes",
            "read.addr.eq(self.index), drain.addr",
            "read.addr.eq(self.read_index), drain.addr",
        ),
    ],
)
