"""Floating-point adder and subtractor."""

from amaranth.hdl import Cat, Const, Module, Mux, signed
from amaranth.lib.wiring import In, Out

from .cell import Cell
from .floats import FORMATS, round_pack, shift_right_sticky, unpack, wire

__all__ = ["FloatAdd"]


class FloatAdd(Cell):
    """``out = a + b``, or ``a - b`` with ``subtract``; combinational.

    Parameters
    ----------
    fmt : str
        ``bf16`` or ``fp32``.
    subtract : bool
    """

    twin = "step_lang.numerics.arith.add_bits"

    def __init__(self, fmt: str, subtract: bool = False):
        self.fmt, self.subtract = FORMATS[fmt], subtract
        self.arguments = (fmt, subtract)
        super().__init__({"a": In(self.fmt.width), "b": In(self.fmt.width), "out": Out(self.fmt.width)})

    @property
    def module_name(self):
        return f"{self.fmt.name}_{'sub' if self.subtract else 'add'}"

    def elaborate(self, platform):
        m = Module()
        fmt = self.fmt
        other = wire(m, "other", Cat(self.b[:-1], ~self.b[-1] if self.subtract else self.b[-1]))
        swap = wire(m, "swap", self.a[:-1] < other[:-1])
        greater = unpack(m, "greater", wire(m, "greater", Mux(swap, other, self.a)), fmt)
        lesser = unpack(m, "lesser", wire(m, "lesser", Mux(swap, self.a, other)), fmt)
        # Three bits below the last: guard, round, and a sticky bit that stands for all that the alignment drops.
        reach = fmt.mant_bits + 4
        gap = wire(m, "gap", (greater.exp - lesser.exp)[:8])
        distance = wire(m, "distance", Mux(gap > reach, reach, gap), reach.bit_length())
        aligned = shift_right_sticky(m, "aligned", Cat(Const(0, 3), lesser.mant), distance)
        differ = wire(m, "differ", greater.sign ^ lesser.sign)
        width = len(aligned) + 1
        high = wire(m, "high", Cat(Const(0, 3), greater.mant))
        total = wire(m, "total", Mux(differ, high - aligned, high + aligned)[:width])
        sign = wire(m, "sign", Mux(total == 0, greater.sign & lesser.sign, greater.sign))
        exp = wire(m, "exp", greater.exp - 3, signed(10))
        finite = round_pack(m, "finite", sign, total, exp, fmt)
        nan = wire(m, "nan", greater.nan | lesser.nan | (greater.inf & lesser.inf & differ))
        infinite = wire(m, "infinite", Cat(Const(fmt.inf, fmt.width - 1), greater.sign))
        m.d.comb += self.out.eq(Mux(nan, fmt.nan, Mux(greater.inf, infinite, finite)))
        return m
