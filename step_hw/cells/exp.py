"""The exponential."""

from amaranth.hdl import Const, Module, Mux, signed
from amaranth.lib.wiring import In, Out

from step_lang.numerics.tables import LOG2E

from .cell import Cell
from .exp2 import exponent, power_of_two
from .floats import BF16, round_pack, unpack, wire

__all__ = ["Bf16Exp"]


class Bf16Exp(Cell):
    """``out = e**a``: a base-2 exponent in fixed point, its fraction through two tables; combinational."""

    twin = "step_lang.numerics.UNARY['exp']"
    arguments = ()
    module_name = "bf16_exp"

    def __init__(self):
        super().__init__({"a": In(16), "out": Out(16)})

    def elaborate(self, platform):
        m = Module()
        x = unpack(m, "x", self.a, BF16)
        y = exponent(m, x, Const(LOG2E), 134)
        mant, power = power_of_two(m, wire(m, "signed_y", Mux(x.sign, -y, y), signed(21)))
        exp = wire(m, "exp", power + (BF16.offset - 15), signed(11))
        finite = round_pack(m, "finite", Const(0, 1), mant, exp, BF16)
        infinite = wire(m, "infinite", Mux(x.sign, 0, BF16.inf))
        m.d.comb += self.out.eq(Mux(x.nan, BF16.nan, Mux(x.inf, infinite, finite)))
        return m
