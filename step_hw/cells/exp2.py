"""What exp and the logistic functions share: the base-2 exponent of an operand, and 2 to that power."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed

from step_lang.numerics.tables import EXP2_COARSE, EXP2_FINE, FRACTION_BITS

from .floats import Fields, lookup, wire

__all__ = ["exponent", "power_of_two"]

SATURATED = (1 << 20) - 1


def exponent(m: Module, x: Fields, factor: Value, limit: int) -> Signal:
    """|x| * factor in units of 2**-12, 20 bits, rounded, saturated (twin: ``numerics.unary._exponent``)."""
    product = wire(m, "scaled", x.mant * factor)
    # Beyond 40 the shifted product is 0 or 1/2 of a unit at most; exp >= limit leaves the shift without meaning.
    distance = wire(m, "down", (141 - x.exp)[:8])
    far = wire(m, "down_far", distance > 40)
    doubled = wire(m, "doubled", product >> Mux(far, 40, distance)[:6])
    rounded = wire(m, "rounded", (doubled + 1) >> 1)
    saturate = wire(m, "saturate", (x.exp >= limit) | (rounded > SATURATED))
    return wire(m, "y", Mux(saturate, SATURATED, rounded), 20)


def power_of_two(m: Module, y: Value) -> tuple[Signal, Signal]:
    """2**(y / 4096) of a signed y: 16-bit mantissa in units of 2**-15, floor exponent (twin: ``_exp2``)."""
    coarse = lookup(m, "coarse", EXP2_COARSE, y[FRACTION_BITS // 2:FRACTION_BITS])
    fine = lookup(m, "fine", EXP2_FINE, y[:FRACTION_BITS // 2])
    mant = wire(m, "power_mant", (coarse + (coarse * fine >> 16))[:16])
    return mant, wire(m, "power_exp", Cat(y[FRACTION_BITS:]).as_signed(), signed(len(y) - FRACTION_BITS))
