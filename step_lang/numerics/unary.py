"""Unary bf16 functions as fixed-point algorithms meant for gates.

Each is defined on bit patterns by integers alone: one constant multiplication into a base-2 exponent, two 64-entry
tables for 2**f, and for the logistic family one restoring division. `tests/test_numerics_unary.py` compares all 65,536
inputs with the exact result; the worst errors it finds are stated per function in `MAX_ULP`. Twins:
`step_hw/cells/exp.py`, `logistic.py` (silu, sigmoid, gelu), `rsqrt.py`, `bf16_div.py` (reciprocal).

Base-2 exponent: with x = +-m * 2**(e-134), `y = round(m * C * 2**(e-142))` is |x| * c in units of 2**-12, C being c in
units of 2**-20. From |x| = 128 on (e >= 134) it saturates at 2**20 - 1, an exponent of almost 256.
2**f: `coarse[f >> 6] + (coarse * fine[f & 63] >> 16)`, 16 bits with the leading one set, relative error < 2**-14.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from .arith import div_bits
from .formats import BF16, bits_of, from_bits, round_pack, unpack
from .tables import (
    EXP2_COARSE,
    EXP2_FINE,
    FRACTION_BITS,
    GELU_CUBIC,
    GELU_LINEAR,
    LOG2E,
    RECIPROCAL_ONE,
    RSQRT,
)

__all__ = ["MAX_ULP", "UNARY", "unary"]

_SATURATED = (1 << 20) - 1
_COARSE = np.array(EXP2_COARSE, dtype=np.int64)
_FINE = np.array(EXP2_FINE, dtype=np.int64)
_RSQRT = np.array(RSQRT, dtype=np.int64)


def _exponent(mant: np.ndarray, exp: np.ndarray, factor: np.ndarray | int, limit: int) -> np.ndarray:
    """|x| * factor in units of 2**-12 (20 bits), rounded; saturated where exp >= limit or the result does not fit."""
    doubled = (mant * factor) >> np.clip(141 - exp, 0, 40)
    return np.where(exp >= limit, _SATURATED, np.minimum((doubled + 1) >> 1, _SATURATED))


def _exp2(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """2**(y / 4096) for a signed y, as (16-bit mantissa in units of 2**-15, floor exponent)."""
    fraction = y & ((1 << FRACTION_BITS) - 1)
    coarse = _COARSE[fraction >> 6]
    return coarse + ((coarse * _FINE[fraction & 63]) >> 16), y >> FRACTION_BITS


def _exp(bits: np.ndarray) -> np.ndarray:
    x = unpack(bits, BF16)
    y = _exponent(x.mant, x.exp, LOG2E, 134)
    mant, power = _exp2(np.where(x.sign, -y, y))
    out = round_pack(np.zeros_like(x.sign), mant, power + (BF16.offset - 15), BF16)
    out = np.where(x.inf, np.where(x.sign, 0, BF16.inf), out)
    return np.where(x.nan, BF16.nan, out)


def _logistic(bits: np.ndarray, y: np.ndarray, scaled: bool, limit: int) -> np.ndarray:
    """s / (1 + 2**(-y/4096)) for x >= 0, s * 2**(-y/4096) / (1 + 2**(-y/4096)) for x < 0; s = x if scaled, else 1.

    Numerator and denominator are integers; their quotient has 14 bits, and its remainder is the sticky bit. Beyond
    `limit` (biased exponent) the negative side is zero.
    """
    x = unpack(bits, BF16)
    mant, power = _exp2(-y)
    denominator = (1 << 15) + (mant >> np.minimum(-power, 17))
    factor, exp = (x.mant, x.exp) if scaled else (128, 127)
    numerator = factor * np.where(x.sign, mant, 1 << 15)
    quotient, rest = np.divmod(numerator << 5, denominator)
    magnitude = np.where(x.sign & (x.exp >= limit), 0, quotient << 1 | (rest != 0))
    sign = x.sign if scaled else np.zeros_like(x.sign)
    out = round_pack(sign, magnitude, exp - 6 + np.where(x.sign, power, 0), BF16)
    if scaled:
        out = np.where(x.inf & ~x.sign, BF16.inf, out)
    return np.where(x.nan, BF16.nan, out)


def _sigmoid(bits: np.ndarray) -> np.ndarray:
    x = unpack(bits, BF16)
    return _logistic(bits, _exponent(x.mant, x.exp, LOG2E, 134), scaled=False, limit=134)


def _silu(bits: np.ndarray) -> np.ndarray:
    x = unpack(bits, BF16)
    return _logistic(bits, _exponent(x.mant, x.exp, LOG2E, 134), scaled=True, limit=134)


def _gelu(bits: np.ndarray) -> np.ndarray:
    """x * sigmoid(2 sqrt(2/pi) (x + 0.044715 x**3)), the tanh form; |x| >= 16 saturates."""
    x = unpack(bits, BF16)
    square = (x.mant * x.mant * GELU_CUBIC) >> np.clip(274 - 2 * x.exp, 0, 62)
    return _logistic(bits, _exponent(x.mant, x.exp, GELU_LINEAR + square, 131), scaled=True, limit=131)


def _rsqrt(bits: np.ndarray) -> np.ndarray:
    x = unpack(bits, BF16)
    lead = np.where(x.mant == 0, 0, 8 - np.frexp(x.mant.astype(np.float64))[1])
    mant, exp = x.mant << lead, x.exp - lead - 127
    entry = _RSQRT[(mant & 127) | ((exp & 1) << 7)]
    whole = entry == 256
    half = exp >> 1
    out = ((126 - half + whole) << 7) | np.where(whole, 0, entry & 127)
    out = np.where(x.inf, 0, np.where(x.zero, BF16.inf | (bits & BF16.sign_bit), out))
    return np.where(x.nan | (x.sign & ~x.zero), BF16.nan, out)


def _reciprocal(bits: np.ndarray) -> np.ndarray:
    return div_bits(np.full_like(bits, RECIPROCAL_ONE), bits, BF16)


#: Definitions by name: bf16 bit patterns (int64) to bf16 bit patterns.
UNARY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "exp": _exp,
    "silu": _silu,
    "sigmoid": _sigmoid,
    "gelu": _gelu,
    "rsqrt": _rsqrt,
    "reciprocal": _reciprocal,
}

#: Largest distance to the exact result over all inputs, in bf16 ulps of the exact result (0.5: correctly rounded).
MAX_ULP: dict[str, float] = {
    "exp": 0.519,
    "silu": 0.510,
    "sigmoid": 0.511,
    "gelu": 0.509,
    "rsqrt": 0.5,
    "reciprocal": 0.5,
}


@cache
def _table(name: str) -> np.ndarray:
    return UNARY[name](np.arange(1 << 16, dtype=np.int64)).astype(np.uint16)


def unary(name: str, values: np.ndarray) -> np.ndarray:
    """The function `name` of every element of a bf16 array (through a table of all 65,536 results)."""
    return from_bits(_table(name)[bits_of(values, BF16)], BF16)
