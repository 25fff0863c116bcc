"""Faults of flat_map."""

from ..fault import seeded

__all__ = ["UNIT"]

UNIT = seeded(
    "flat_map",
    ["rtl_tests/test_flat_map.py"],
    units_flat_map=[
        ("count off by one", "self.last.eq(made + 1 == count)", "self.last.eq(made == count)"),
        ("a level too many", "self.levels.eq(self.dims - 1)", "self.levels.eq(self.dims)"),
        ("stop of one before dropped", "m.d.comb += o.payload.stop.eq(token.stop)", "m.d.comb += o.payload.stop.eq(0)"),
        ("open address does not wait", "o.valid.eq(full & (~open_ | have & ~vanishes))", "o.valid.eq(full)"),
        (
            "missed back-pressure",
            "takes.eq(have & (vanishes | ~full | o.valid & o.ready))",
            "takes.eq(have & (vanishes | ~full | o.valid))",
        ),
        (
            "offset not reset",
            "offset.eq(Mux(self.last, 0, offset + self.stride.as_signed()))",
            "offset.eq(offset + self.stride.as_signed())",
        ),
        ("address beyond u32 passes", "(pieces.address >> NUMBER != 0)", "(pieces.address >> (NUMBER + 1) != 0)",
         "errors"),
        ("scale without sign", "self.element * self.scale.as_signed()", "self.element * self.scale"),
        ("stride without sign", "offset + self.stride.as_signed()", "offset + self.stride"),
        (
            "done held open",
            "open_.eq(self.pieces.waits & ~token.empty & (token.stop == 0))",
            "open_.eq(self.pieces.waits & (token.stop == 0))",
        ),
        ("element leaves with its first address", "i.ready.eq(takes & ends)", "i.ready.eq(takes)"),
        (
            "steps without being taken",
            "pieces.step.eq(takes & element & ~pieces.nothing)",
            "pieces.step.eq(have & element & ~pieces.nothing)",
        ),
        ("count not reset", "made.eq(Mux(self.last, 0, made + 1))", "made.eq(made + 1)"),
        (
            "bare stop not raised",
            "Mux(ends, i.payload.stop + pieces.levels, pieces.wraps)",
            "Mux(ends, i.payload.stop + Mux(i.payload.empty, 0, pieces.levels), pieces.wraps)",
        ),
        ("error not sticky", "have.eq(i.valid & (wrong == 0) & (error == 0))", "have.eq(i.valid & (error == 0))"),
    ],
)
