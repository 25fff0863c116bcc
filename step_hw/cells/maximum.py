"""Floating-point maximum."""

from amaranth.hdl import Cat, Module, Mux
from amaranth.lib.wiring import In, Out

from .cell import Cell
from .floats import FORMATS, wire

__all__ = ["FloatMax"]


class FloatMax(Cell):
    """``out = max(a, b)`` of IEEE 754-2019: a NaN wins, and -0 < +0; combinational.

    Parameters
    ----------
    fmt : str
        ``bf16`` or ``fp32``.
    """

    twin = "step_lang.numerics.arith.max_bits"

    def __init__(self, fmt: str):
        self.fmt = FORMATS[fmt]
        self.arguments = (fmt,)
        super().__init__({"a": In(self.fmt.width), "b": In(self.fmt.width), "out": Out(self.fmt.width)})

    @property
    def module_name(self):
        return f"{self.fmt.name}_max"

    def elaborate(self, platform):
        m = Module()
        # Sign-magnitude patterns become ordered integers by complementing negatives.
        keys = [wire(m, f"key_{name}", Cat(Mux(bits[-1], ~bits[:-1], bits[:-1]), ~bits[-1]))
                for name, bits in (("a", self.a), ("b", self.b))]
        nan = wire(m, "nan", (self.a[:-1] > self.fmt.inf) | (self.b[:-1] > self.fmt.inf))
        m.d.comb += self.out.eq(Mux(nan, self.fmt.nan, Mux(keys[0] >= keys[1], self.a, self.b)))
        return m
