"""Conversions between element types."""

from amaranth.hdl import Cat, Const, Module, Mux, signed
from amaranth.lib.wiring import In, Out

from .cell import Cell
from .floats import BF16, FORMATS, FP32, round_pack, unpack, wire

__all__ = ["Cast"]

INTEGERS = {"bool": (1, False), "int8": (8, True), "int32": (32, True), "u32": (32, False)}
"""Integer types: bits, whether signed."""


class Cast(Cell):
    """``out`` is ``a`` converted; combinational.

    Parameters
    ----------
    source, target : str
        Element types: ``bf16``, ``fp32``, ``int8``, ``int32``, ``u32``; as source also ``bool``.
    """

    twin = "step_lang.numerics.cast"

    def __init__(self, source: str, target: str):
        for name, known in ((source, {**FORMATS, **INTEGERS}), (target, {**FORMATS, **INTEGERS})):
            if name not in known or (name == "bool" and name is target):
                raise ValueError(f"a cast cell converts between {', '.join(known)} (bool: from only), not {name}")
        self.source, self.target = source, target
        self.arguments = (source, target)
        width = {**{name: fmt.width for name, fmt in FORMATS.items()}, **{name: w for name, (w, _) in INTEGERS.items()}}
        super().__init__({"a": In(width[source]), "out": Out(width[target])})

    @property
    def module_name(self):
        return f"cast_{self.source}_{self.target}"

    def elaborate(self, platform):
        m = Module()
        source, target = FORMATS.get(self.source), FORMATS.get(self.target)
        if source and target:
            result = self._float_to_float(m)
        elif source:
            result = self._to_integer(m, source)
        elif target:
            result = self._from_integer(m, target)
        else:
            result = self._saturate(m, self._integer(m))
        m.d.comb += self.out.eq(result)
        return m

    def _float_to_float(self, m):
        source, target = FORMATS[self.source], FORMATS[self.target]
        nan = wire(m, "nan", self.a[:-1] > source.inf)
        if source is target:
            return Mux(nan, target.nan, self.a)
        if source is BF16:
            return Mux(nan, FP32.nan, Cat(Const(0, 16), self.a))
        up = wire(m, "up", self.a[15] & ((self.a[:15] != 0) | self.a[16]))
        return Mux(nan, BF16.nan, (self.a[16:] + up)[:16])

    def _integer(self, m):
        width, is_signed = INTEGERS[self.source]
        return wire(m, "whole", self.a.as_signed() if is_signed else self.a, signed(width + 2))

    def _from_integer(self, m, fmt):
        value = self._integer(m)
        magnitude = wire(m, "magnitude", Mux(value < 0, -value, value)[:len(self.a)])
        return round_pack(m, "rounded", value[-1], magnitude, Const(fmt.offset, signed(10)), fmt)

    def _to_integer(self, m, fmt):
        """Nearest integer, ties to even; more than 33 bits saturate in any target."""
        x = unpack(m, "x", self.a, fmt)
        shift = wire(m, "shift", x.exp - fmt.offset, signed(10))
        left = wire(m, "left", Mux(shift < 0, 0, shift), 8)
        right = wire(m, "right", Mux(shift < 0, -shift, 0), 8)
        reach = fmt.mant_bits + 3
        amount = wire(m, "amount", Mux(right > reach, reach, right), reach.bit_length())
        kept = wire(m, "kept", x.mant >> amount)
        below = wire(m, "below", Cat(Const(0, reach), x.mant) >> amount)[:reach]
        up = wire(m, "up", below[-1] & ((below[:-1] != 0) | kept[0]))
        # A left shift is of a normal number, mant_bits + 1 long: shifted further than 33 - mant_bits it saturates.
        limit = 33 - fmt.mant_bits
        huge = wire(m, "huge", x.inf | (left > limit))
        moved = wire(m, "moved", (x.mant << left[:limit.bit_length()])[:33 + 1])
        nearest = wire(m, "nearest", Mux(shift < 0, kept + up, moved), 34)
        magnitude = wire(m, "magnitude", Mux(x.nan, 0, Mux(huge, (1 << 34) - 1, nearest)), 34)
        return self._saturate(m, wire(m, "value", Mux(x.sign, -magnitude, magnitude), signed(35)))

    def _saturate(self, m, value):
        width, is_signed = INTEGERS[self.target]
        low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if is_signed else (0, (1 << width) - 1)
        return Mux(value < low, low, Mux(value > high, high, value))[:width]
