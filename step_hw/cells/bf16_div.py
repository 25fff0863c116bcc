"""bf16 divider, and the reciprocal that is one with a constant dividend."""

from amaranth.hdl import Cat, Const, Module, Mux, signed
from amaranth.lib.wiring import In, Out

from step_lang.numerics.tables import RECIPROCAL_ONE

from .cell import Cell
from .floats import BF16, divide, normalise, round_pack, unpack, wire

__all__ = ["Bf16Div", "Bf16Reciprocal"]


def _divide(m: Module, dividend, divisor):
    """Pattern of ``dividend / divisor``: restoring division of normalised mantissas, remainder as sticky bit."""
    a, b = unpack(m, "a", dividend, BF16), unpack(m, "b", divisor, BF16)
    sign = wire(m, "sign", a.sign ^ b.sign)
    mant_a, lead_a = normalise(m, "a_norm", a.mant)
    mant_b, lead_b = normalise(m, "b_norm", b.mant)
    quotient, rest = divide(m, "quotient", mant_a, mant_b, 10)
    magnitude = wire(m, "magnitude", Cat(rest, quotient))
    exp = wire(m, "exp", a.exp - lead_a - b.exp + lead_b + (BF16.offset - 11), signed(11))
    finite = round_pack(m, "finite", sign, magnitude, exp, BF16)
    nan = wire(m, "nan", a.nan | b.nan | (a.inf & b.inf) | (a.zero & b.zero))
    infinite = wire(m, "infinite", Cat(Const(BF16.inf, 15), sign))
    zero = wire(m, "nothing", Cat(Const(0, 15), sign))
    return Mux(nan, BF16.nan, Mux(a.inf | b.zero, infinite, Mux(b.inf | a.zero, zero, finite)))


class Bf16Div(Cell):
    """``out = a / b``, rounded once; combinational."""

    twin = "step_lang.numerics.arith.div_bits"
    arguments = ()
    module_name = "bf16_div"

    def __init__(self):
        super().__init__({"a": In(16), "b": In(16), "out": Out(16)})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.out.eq(_divide(m, self.a, self.b))
        return m


class Bf16Reciprocal(Cell):
    """``out = 1 / a``, rounded once; combinational."""

    twin = "step_lang.numerics.UNARY['reciprocal']"
    arguments = ()
    module_name = "bf16_reciprocal"

    def __init__(self):
        super().__init__({"a": In(16), "out": Out(16)})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.out.eq(_divide(m, Const(RECIPROCAL_ONE, 16), self.a))
        return m
