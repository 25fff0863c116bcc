"""The int8 dot product cell: G exact products, summed to int32."""

from amaranth.hdl import Module, Signal, signed
from amaranth.lib.wiring import In, Out

from .cell import Cell
from .floats import wire

__all__ = ["Int8DotCell"]


class Int8DotCell(Cell):
    """int32 dot product of two groups of G int8 values, with the pipeline of :class:`.dot.DotCell`: products, then sum.

    Parameters
    ----------
    group : int
        Products per cycle, G, 1..16.

    Members
    -------
    a, b : In(8 G)
    out : Out(32)
        The result of the operands two clocks ago.
    """

    twin = "step_lang.numerics.Numerics.group_dots"

    def __init__(self, group: int):
        if not 1 <= group <= 16:
            raise ValueError(f"a dot product cell has 1..16 products, not {group}")
        self.group = group
        self.arguments = (group,)
        super().__init__({"a": In(8 * group), "b": In(8 * group), "out": Out(32)}, clocked=True)

    @property
    def module_name(self):
        return f"dot_int8_g{self.group}"

    def elaborate(self, platform):
        m = Module()
        self.clock_domain(m)
        terms = []
        for k in range(self.group):
            a, b = (values.word_select(k, 8).as_signed() for values in (self.a, self.b))
            product = Signal(signed(16), name=f"product{k}")
            m.d.sync += product.eq(a * b)
            terms.append(product)
        level = 0
        while len(terms) > 1:
            pairs = [wire(m, f"sum{level}_{i}", x + y) for i, (x, y) in enumerate(zip(terms[::2], terms[1::2]))]
            terms = pairs + terms[len(terms) & ~1:]
            level += 1
        total = Signal(signed(32), name="sum_total")
        m.d.sync += total.eq(terms[0])
        m.d.comb += self.out.eq(total)
        return m
