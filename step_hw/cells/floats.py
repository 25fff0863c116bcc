"""Pieces that floating-point cells share: unpacking, normalising, rounding. Twin: ``step_lang/numerics/formats.py``.

All are functions that add named combinational signals to a module, so that a cell reads like its definition. Widths
stay at 64 bits or below and shifts by a variable are to the right or by conditional constants: both gates and
simulators handle those well.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value

from step_lang.numerics.formats import BF16, FP32, Format

__all__ = [
    "BF16", "FORMATS", "FP32", "Fields", "Format", "divide", "lookup", "normalise", "round_pack", "shift_right_sticky",
    "unpack", "wire",
]

FORMATS = {"bf16": BF16, "fp32": FP32}


def wire(m: Module, name: str, value, shape=None) -> Signal:
    """A named signal driven by ``value`` (of its shape unless ``shape`` is given)."""
    value = Value.cast(value)
    signal = Signal(value.shape() if shape is None else shape, name=name)
    m.d.comb += signal.eq(value)
    return signal


@dataclass(frozen=True)
class Fields:
    """``numerics.formats.Unpacked`` as signals."""

    sign: Value
    exp: Value
    mant: Value
    nan: Value
    inf: Value
    zero: Value


def unpack(m: Module, name: str, bits: Value, fmt: Format) -> Fields:
    """Fields of a bit pattern; ``exp`` 8 bits, ``mant`` with its hidden bit."""
    frac, field = bits[:fmt.mant_bits], bits[fmt.mant_bits:fmt.mant_bits + 8]
    normal = wire(m, f"{name}_normal", field != 0)
    special = wire(m, f"{name}_special", field == 255)
    no_frac = wire(m, f"{name}_no_frac", frac == 0)
    return Fields(
        sign=wire(m, f"{name}_sign", bits[-1]),
        exp=wire(m, f"{name}_exp", field | ~normal),
        mant=wire(m, f"{name}_mant", Cat(frac, normal)),
        nan=wire(m, f"{name}_nan", special & ~no_frac),
        inf=wire(m, f"{name}_inf", special & no_frac),
        zero=wire(m, f"{name}_zero", ~normal & no_frac),
    )


def normalise(m: Module, name: str, mag: Value) -> tuple[Signal, Signal]:
    """``mag`` shifted left until its top bit is set, and by how much (all ones where ``mag`` is 0), log steps."""
    width = len(mag)
    value = mag
    count: list[Value] = []
    for step in reversed(range((width - 1).bit_length())):
        size = 1 << step
        empty = wire(m, f"{name}_empty{size}", value[max(width - size, 0):] == 0)
        shifted = Cat(Const(0, size), value)[:width]
        value = wire(m, f"{name}_by{size}", Mux(empty, shifted, value))
        count.insert(0, empty)
    return value, wire(m, f"{name}_count", Cat(*count))


def shift_right_sticky(m: Module, name: str, value: Value, amount: Value) -> Signal:
    """``value >> amount`` with the bits that drop out ORed into bit 0."""
    shifted = wire(m, f"{name}_shifted", value >> amount)
    lost = wire(m, f"{name}_lost", (value & ((Const(1) << amount) - 1)[:1 << len(amount)]) != 0)
    return wire(m, name, shifted | lost)


def round_pack(m: Module, name: str, sign: Value, mag: Value, exp: Value, fmt: Format) -> Signal:
    """Pattern of ``(-1)**sign * mag * 2**(exp - fmt.offset)`` rounded once; ``exp`` is signed. See the twin."""
    bits = fmt.mant_bits
    pad = max(0, bits + 3 - len(mag))
    width = len(mag) + pad
    norm, lead = normalise(m, f"{name}_norm", Cat(Const(0, pad), mag))
    # Exponent that the leading bit gives; below 1 the result is subnormal and takes exponent 1.
    lead_exp = wire(m, f"{name}_lead_exp", exp + (width - pad - bits - 1) - lead)
    tiny = wire(m, f"{name}_tiny", lead_exp < 1)
    reach = (bits + 3).bit_length()
    far = wire(m, f"{name}_far", lead_exp < 1 - (bits + 2))
    below = wire(m, f"{name}_below", (1 - lead_exp)[:reach])
    amount = wire(m, f"{name}_amount", Mux(far, bits + 3, Mux(tiny, below, 0)), reach)
    placed = shift_right_sticky(m, f"{name}_placed", norm, amount)
    kept = placed[width - bits - 1:]
    guard, rest = placed[width - bits - 2], placed[:width - bits - 2]
    up = wire(m, f"{name}_up", guard & ((rest != 0) | kept[0]))
    # kept has the hidden bit, which adds one to the exponent field; a carry out of rounding lands there as well.
    field = wire(m, f"{name}_field", Mux(tiny, 0, lead_exp - 1), len(lead_exp))
    packed = wire(m, f"{name}_packed", Cat(Const(0, bits), field) + kept + up, len(field) + bits + 1)
    over = wire(m, f"{name}_over", packed >= fmt.inf)
    magnitude = Mux(norm[-1], Mux(over, fmt.inf, packed[:fmt.width - 1]), 0)
    return wire(m, name, Cat(magnitude[:fmt.width - 1], sign), fmt.width)



def divide(m: Module, name: str, numerator: Value, denominator: Value, bits: int) -> tuple[Signal, Signal]:
    """``numerator * 2**bits // denominator`` (bits + 1 bits) and whether a remainder is left: restoring division, a
    subtractor for each quotient bit. Needs ``numerator < 2 * denominator``."""
    rest = Cat(numerator, Const(0, 1))
    width = max(len(numerator), len(denominator)) + 1
    digits: list[Value] = []
    for i in range(bits + 1):
        fits = wire(m, f"{name}_fits{i}", rest >= denominator)
        left = wire(m, f"{name}_left{i}", Mux(fits, rest - denominator, rest)[:width - 1])
        digits.insert(0, fits)
        rest = Cat(Const(0, 1), left)
    return wire(m, name, Cat(*digits)), wire(m, f"{name}_rest", left != 0)


def lookup(m: Module, name: str, table: Sequence[int], index: Value) -> Signal:
    """A constant table as a selection."""
    out = Signal(max(table).bit_length(), name=name)
    m.d.comb += out.eq(Array(Const(value, len(out)) for value in table)[index])
    return out
