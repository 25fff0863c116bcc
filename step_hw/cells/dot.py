"""The bf16 dot product cell: G exact products, aligned, summed as integers, rounded once to fp32."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from step_lang.numerics.dot import PRODUCT_OFFSET, WINDOW

from .cell import Cell
from .floats import BF16, FP32, round_pack, unpack, wire

__all__ = ["DotCell", "DotOperand", "operand_layout"]

ALIGNED = 16 + WINDOW + 1
"""Bits of an aligned product with its sign."""


def operand_layout(group: int) -> data.StructLayout:
    """G bf16 values as fields, value k at index k of each: ``mant`` and ``exp`` 8 bits, ``sign``, ``inf``, ``zero``
    1 bit each; ``nan`` says whether any of them is NaN."""
    return data.StructLayout({
        "mant": 8 * group, "exp": 8 * group, "sign": group, "inf": group, "zero": group, "nan": 1,
    })


class DotOperand(Cell):
    """Splits G bf16 values into the fields that dot cells share; combinational.

    Parameters
    ----------
    group : int
        Values, G.

    Members
    -------
    values : In(16 G)
    out : Out(operand_layout(G))
    """

    twin = "step_lang.numerics.formats.unpack"

    def __init__(self, group: int):
        self.group = group
        self.arguments = (group,)
        super().__init__({"values": In(16 * group), "out": Out(operand_layout(group))})

    @property
    def module_name(self):
        return f"dot_operand_g{self.group}"

    def elaborate(self, platform):
        m = Module()
        parts = [unpack(m, f"v{k}", self.values.word_select(k, 16), BF16) for k in range(self.group)]
        for field in ("mant", "exp", "sign", "inf", "zero"):
            m.d.comb += self.out[field].eq(Cat(getattr(part, field) for part in parts))
        m.d.comb += self.out.nan.eq(Cat(part.nan for part in parts).any())
        return m


class DotCell(Cell):
    """fp32 dot product of two groups of G unpacked bf16 values.

    A pipeline of two registers that advances with every clock: aligned products, then their sum; normalising and
    rounding follow the last register. The operands come from registers of whoever holds the array, so that one copy
    serves a row (or column) of cells: three registers in all, ``timing.DOT_STAGES``.

    Parameters
    ----------
    group : int
        Products per cycle, G, 1..16.

    Members
    -------
    a, b : In(operand_layout(G))
    out : Out(32)
        The fp32 result of the operands two clocks ago.
    """

    twin = "step_lang.numerics.dot_group"

    def __init__(self, group: int):
        if not 1 <= group <= 16:
            raise ValueError(f"a dot product cell has 1..16 products, not {group}")
        self.group = group
        self.arguments = (group,)
        super().__init__({"a": In(operand_layout(group)), "b": In(operand_layout(group)), "out": Out(32)}, clocked=True)

    @property
    def module_name(self):
        return f"dot_bf16_g{self.group}"

    def elaborate(self, platform):
        m = Module()
        self.clock_domain(m)
        aligned, top, flags = self._align(m)
        total, top, flags = self._sum(m, aligned, top, flags)
        m.d.comb += self.out.eq(self._round(m, total, top, flags))
        return m

    def _register(self, m, name, value):
        register = Signal(value.shape(), name=name)
        m.d.sync += register.eq(value)
        return register

    def _align(self, m):
        products, exps, tops = [], [], []
        for k in range(self.group):
            product = wire(m, f"product{k}", self.a.mant.word_select(k, 8) * self.b.mant.word_select(k, 8))
            exp = wire(m, f"exp{k}", self.a.exp.word_select(k, 8) + self.b.exp.word_select(k, 8))
            products.append(product)
            exps.append(exp)
            tops.append(wire(m, f"candidate{k}", Mux(product != 0, exp, 0)))
        level = 0
        while len(tops) > 1:
            pairs = [wire(m, f"larger{level}_{i}", Mux(x > y, x, y))
                     for i, (x, y) in enumerate(zip(tops[::2], tops[1::2]))]
            tops = pairs + tops[len(tops) & ~1:]
            level += 1
        negative = wire(m, "negative", self.a.sign ^ self.b.sign)
        aligned = []
        for k, (product, exp) in enumerate(zip(products, exps)):
            distance = wire(m, f"distance{k}", (tops[0] - exp)[:9])
            shifted = wire(m, f"shifted{k}", Cat(Const(0, WINDOW), product, Const(0, 1)) >> distance)
            # Offset binary: 2**31 more than the signed value, so that the sum adds unsigned numbers.
            offset = wire(m, f"offset{k}", Mux(negative[k], -shifted, shifted)[:ALIGNED] ^ (1 << (ALIGNED - 1)))
            aligned.append(self._register(m, f"aligned{k}", offset))
        inf = wire(m, "inf", self.a.inf | self.b.inf)
        nan = self.a.nan | self.b.nan | ((self.a.inf & self.b.zero) | (self.a.zero & self.b.inf)).any()
        flags = wire(m, "flags", Cat((inf & ~negative).any(), (inf & negative).any(), nan))
        return aligned, self._register(m, "aligned_top", tops[0]), self._register(m, "aligned_flags", flags)

    def _sum(self, m, aligned, top, flags):
        width = ALIGNED + (self.group - 1).bit_length()
        terms, level = aligned, 0
        while len(terms) > 1:
            pairs = [wire(m, f"sum{level}_{i}", x + y) for i, (x, y) in enumerate(zip(terms[::2], terms[1::2]))]
            terms = pairs + terms[len(terms) & ~1:]
            level += 1
        total = wire(m, "total", (terms[0] - (self.group << (ALIGNED - 1)))[:width])
        return tuple(self._register(m, name, value)
                     for name, value in (("sum_total", total), ("sum_top", top), ("sum_flags", flags)))

    def _round(self, m, total, top, flags):
        sign = wire(m, "sign", total[-1])
        magnitude = wire(m, "magnitude", Mux(sign, -total, total)[:len(total)])
        exp = wire(m, "exp", top + (FP32.offset - WINDOW - PRODUCT_OFFSET), signed(10))
        finite = round_pack(m, "finite", sign, magnitude, exp, FP32)
        plus, minus, nan = flags
        is_nan = wire(m, "is_nan", nan | (plus & minus))
        infinite = wire(m, "infinite", Cat(Const(FP32.inf, 31), minus))
        return Mux(is_nan, FP32.nan, Mux(plus | minus, infinite, finite))
