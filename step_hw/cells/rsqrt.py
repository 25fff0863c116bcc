"""Reciprocal square root: the mantissa by table, the exponent halved."""

from amaranth.hdl import Cat, Const, Module, Mux, signed
from amaranth.lib.wiring import In, Out

from step_lang.numerics.tables import RSQRT

from .cell import Cell
from .floats import BF16, lookup, normalise, unpack, wire

__all__ = ["Bf16Rsqrt"]


class Bf16Rsqrt(Cell):
    """``out = 1 / sqrt(a)``, correctly rounded; combinational."""

    twin = "step_lang.numerics.UNARY['rsqrt']"
    arguments = ()
    module_name = "bf16_rsqrt"

    def __init__(self):
        super().__init__({"a": In(16), "out": Out(16)})

    def elaborate(self, platform):
        m = Module()
        x = unpack(m, "x", self.a, BF16)
        mant, lead = normalise(m, "norm", x.mant)
        exp = wire(m, "exp", x.exp - lead - 127, signed(9))
        entry = lookup(m, "entry", RSQRT, Cat(mant[:7], exp[0]))
        whole = entry[8]  # only 1/sqrt(1) is 1
        result_exp = wire(m, "result_exp", (126 - (exp >> 1) + whole)[:8])
        finite = wire(m, "finite", Cat(Mux(whole, 0, entry[:7])[:7], result_exp, Const(0, 1)))
        infinite = wire(m, "infinite", Cat(Const(BF16.inf, 15), x.sign))
        nan = wire(m, "nan", x.nan | (x.sign & ~x.zero))
        m.d.comb += self.out.eq(Mux(nan, BF16.nan, Mux(x.zero, infinite, Mux(x.inf, 0, finite))))
        return m
