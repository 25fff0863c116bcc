"""Faults of reshape."""

from ..fault import seeded

__all__ = ["UNIT"]

UNIT = seeded(
    "reshape",
    ["rtl_tests/test_reshape.py"],
    units_reshape=[
        ("off by one: a chunk is one longer", "filled.eq(place + 1 == cfg.chunk)", "filled.eq(place == cfg.chunk)"),
        ("done inside a chunk pads nothing", "pads.eq(tail | (i.valid & p.done & (place != 0)))", "pads.eq(tail)"),
        (
            "off by one: a dimension ends at its own stop",
            "ends.eq(~p.done & (p.stop > dim))",
            "ends.eq(~p.done & (p.stop >= dim))",
        ),
        ("an empty dimension has a position", "nothing.eq(p.empty & ends & (place == 0))", "nothing.eq(0)"),
        ("the chunk's stop is one too low", "closing.eq(p.stop + 1)", "closing.eq(p.stop)"),
        ("a position ends with its first vector", "Mux(pads, last0 & last1,", "Mux(pads, last0,"),
        ("padding before done ends a level too low", "Mux(tail, closing, dim + 1)", "Mux(tail, closing, dim)"),
        ("the input leaves while it is padded", "i.ready.eq(goes & ~pads)", "i.ready.eq(goes)"),
        (
            "a beat is given again to who has it",
            "out.valid.eq(offers & wants[k] & ~taken[k])",
            "out.valid.eq(offers & wants[k])",
        ),
        (
            "the beat leaves with the quicker output",
            "goes.eq(offers & (taken | takes | ~Cat(wants)).all())",
            "goes.eq(offers & (taken | takes).any())",
        ),
        ("missed back-pressure", "goes.eq(offers & (taken | takes | ~Cat(wants)).all())", "goes.eq(offers)"),
        ("off by one: a flag for tensors above the shared ones", "(stop >= cfg.flag_rank))", "(stop > cfg.flag_rank))"),
        (
            "flags keep the shared dimensions' stops",
            "self.out1.payload.stop.eq(stop - cfg.flag_rank)",
            "self.out1.payload.stop.eq(stop)",
        ),
        ("padding is not flagged", "self.out1.payload.data.eq(pads)", "self.out1.payload.data.eq(0)"),
        ("a chunk is never closed", "place.eq(Mux(filled, 0, place + 1))", "place.eq(Mux(filled, place, place + 1))"),
        ("padding goes on", "m.d.sync += tail.eq(0)", "m.d.sync += tail.eq(1)"),
        ("rows of the input in padding", "o.payload.rows.eq(self.pad_rows)", "o.payload.rows.eq(p.rows)"),
        ("who has taken is kept for the next beat", "taken.eq(Mux(goes, 0, taken | takes))", "taken.eq(taken | takes)"),
    ],
)
