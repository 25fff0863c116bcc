"""Floating-point multiplier: one rounding of the exact product."""

from amaranth.hdl import Cat, Const, Module, Mux, signed
from amaranth.lib.wiring import In, Out

from .cell import Cell
from .floats import FORMATS, round_pack, unpack, wire

__all__ = ["FloatMul"]


class FloatMul(Cell):
    """``out = a * b``; combinational.

    Parameters
    ----------
    fmt : str
        ``bf16`` or ``fp32``.
    """

    twin = "step_lang.numerics.arith.mul_bits"

    def __init__(self, fmt: str):
        self.fmt = FORMATS[fmt]
        self.arguments = (fmt,)
        super().__init__({"a": In(self.fmt.width), "b": In(self.fmt.width), "out": Out(self.fmt.width)})

    @property
    def module_name(self):
        return f"{self.fmt.name}_mul"

    def elaborate(self, platform):
        m = Module()
        fmt = self.fmt
        a, b = unpack(m, "a", self.a, fmt), unpack(m, "b", self.b, fmt)
        sign = wire(m, "sign", a.sign ^ b.sign)
        product = wire(m, "product", a.mant * b.mant)
        exp = wire(m, "exp", a.exp + b.exp - fmt.offset, signed(10))
        finite = round_pack(m, "finite", sign, product, exp, fmt)
        nan = wire(m, "nan", a.nan | b.nan | (a.inf & b.zero) | (a.zero & b.inf))
        infinite = wire(m, "infinite", Cat(Const(fmt.inf, fmt.width - 1), sign))
        m.d.comb += self.out.eq(Mux(nan, fmt.nan, Mux(a.inf | b.inf, infinite, finite)))
        return m
