"""Constants and small tables of the unary functions, each by formula, the same on every machine.

`decimal` is used rather than binary floating point so that no platform's libm decides a bit of the hardware.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal

__all__ = [
    "EXP2_COARSE",
    "EXP2_FINE",
    "FRACTION_BITS",
    "GELU_CUBIC",
    "GELU_LINEAR",
    "LOG2E",
    "RECIPROCAL_ONE",
    "RSQRT",
]

_CONTEXT = Context(prec=60, rounding=ROUND_HALF_EVEN)
_PI = Decimal("3.14159265358979323846264338327950288419716939937510")


def _fixed(value: Decimal, bits: int) -> int:
    """`value * 2**bits` to the nearest integer."""
    return int(_CONTEXT.to_integral_value(_CONTEXT.multiply(value, Decimal(1 << bits))))


def _exp2(numerator: int, denominator: int) -> Decimal:
    return _CONTEXT.power(Decimal(2), _CONTEXT.divide(Decimal(numerator), Decimal(denominator)))


#: Fraction bits of the base-2 exponent; the upper half indexes the coarse table, the lower half the fine one.
FRACTION_BITS = 12

_log2e = _CONTEXT.divide(Decimal(1), _CONTEXT.ln(Decimal(2)))

#: log2(e) in units of 2**-20.
LOG2E = _fixed(_log2e, 20)

#: 2**(i/64) in units of 2**-15: 16 bits, the leading one set.
EXP2_COARSE = tuple(_fixed(_exp2(i, 64), 15) for i in range(64))

#: 2**(j/4096) - 1 in units of 2**-16: at most 10 bits.
EXP2_FINE = tuple(_fixed(_exp2(j, 4096) - 1, 16) for j in range(64))

_gelu = _CONTEXT.multiply(_CONTEXT.multiply(Decimal(2), _CONTEXT.sqrt(_CONTEXT.divide(Decimal(2), _PI))), _log2e)

#: 2 sqrt(2/pi) log2(e) in units of 2**-20, and the same times 0.044715 in units of 2**-26.
GELU_LINEAR = _fixed(_gelu, 20)
GELU_CUBIC = _fixed(_CONTEXT.multiply(_gelu, Decimal("0.044715")), 26)

#: 1/sqrt(v) in units of 2**-8, v = (128 + i % 128) / 128 * 2**(i // 128): correctly rounded, 256 for i = 0.
RSQRT = tuple(
    _fixed(_CONTEXT.divide(1, _CONTEXT.sqrt(_CONTEXT.divide((128 + i % 128) << (i // 128), 128))), 8)
    for i in range(256)
)

#: bf16 pattern of 1.0, the dividend of a reciprocal.
RECIPROCAL_ONE = 0x3F80
