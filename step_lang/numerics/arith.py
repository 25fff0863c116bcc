"""Arithmetic on arrays of one element type, bit for bit what the gates compute.

Floating point: IEEE 754 with subnormals, round to nearest even, and one canonical NaN. Integers wrap. Both operands
and the result share one dtype and broadcast as `numpy` does.

Twins: `step_hw/cells/float_mul.py`, `float_add.py`, `maximum.py`, `bf16_div.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .formats import BF16, FP32, Format, bits_of, from_bits, round_pack, unpack

__all__ = ["add", "canonical", "div", "format_of", "maximum", "mul", "neg", "sub"]

_FORMATS = {BF16.dtype: BF16, FP32.dtype: FP32}


def format_of(dtype: np.dtype) -> Format | None:
    """The floating-point format of `dtype`, or None for an integer type."""
    return _FORMATS.get(np.dtype(dtype))


def _same(name: str, a: np.ndarray, b: np.ndarray) -> Format | None:
    if a.dtype != b.dtype:
        raise TypeError(f"{name} needs operands of one type, got {a.dtype} and {b.dtype}")
    fmt = format_of(a.dtype)
    if fmt is None and a.dtype.kind not in "iu":
        raise TypeError(f"{name} is not defined for {a.dtype}")
    return fmt


def _float_op(op: Callable[..., np.ndarray], a: np.ndarray, b: np.ndarray, fmt: Format) -> np.ndarray:
    bits_a, bits_b = np.broadcast_arrays(bits_of(a, fmt), bits_of(b, fmt))
    return from_bits(op(bits_a, bits_b, fmt), fmt)


def add_bits(a: np.ndarray, b: np.ndarray, fmt: Format) -> np.ndarray:
    """Bit patterns of a + b (int64 in and out)."""
    swap = (a & ~fmt.sign_bit) < (b & ~fmt.sign_bit)
    big, small = unpack(np.where(swap, b, a), fmt), unpack(np.where(swap, a, b), fmt)
    # Three bits below the last: guard, round, and a sticky bit that stands for all that the alignment drops.
    distance = np.minimum(big.exp - small.exp, fmt.mant_bits + 4)
    wide = small.mant << 3
    aligned = wide >> distance
    aligned |= (aligned << distance) != wide
    differ = big.sign != small.sign
    total = (big.mant << 3) + np.where(differ, -aligned, aligned)
    sign = np.where(total == 0, big.sign & small.sign, big.sign)
    out = round_pack(sign, total, big.exp - 3, fmt)
    out = np.where(big.inf, fmt.inf | np.where(big.sign, fmt.sign_bit, 0), out)
    nan = big.nan | small.nan | (big.inf & small.inf & differ)
    return np.where(nan, fmt.nan, out)


def mul_bits(a: np.ndarray, b: np.ndarray, fmt: Format) -> np.ndarray:
    """Bit patterns of a * b."""
    ua, ub = unpack(a, fmt), unpack(b, fmt)
    sign = ua.sign != ub.sign
    mag, exp = ua.mant * ub.mant, ua.exp + ub.exp - fmt.offset
    out = round_pack(sign, mag, exp, fmt)
    inf = ua.inf | ub.inf
    out = np.where(inf, fmt.inf | np.where(sign, fmt.sign_bit, 0), out)
    nan = ua.nan | ub.nan | (ua.inf & ub.zero) | (ua.zero & ub.inf)
    return np.where(nan, fmt.nan, out)


def div_bits(a: np.ndarray, b: np.ndarray, fmt: Format) -> np.ndarray:
    """Bit patterns of a / b (bf16 only): integer quotient of normalised mantissas, remainder as sticky bit."""
    ua, ub = unpack(a, fmt), unpack(b, fmt)
    sign = ua.sign != ub.sign
    mant_a, exp_a = _normalised(ua.mant, ua.exp)
    mant_b, exp_b = _normalised(ub.mant, ub.exp)
    safe = np.maximum(mant_b, 1)
    quotient, rest = np.divmod(mant_a << 10, safe)
    mag = quotient << 1 | (rest != 0)
    # quotient/2**10 is the mantissas' ratio; 11 bits are below the unit of mag, and the result's unit is 2**-7.
    out = round_pack(sign, mag, exp_a - exp_b + fmt.offset - 11, fmt)
    infinite = ua.inf | ub.zero
    out = np.where(infinite, fmt.inf, np.where(ub.inf | ua.zero, 0, out & ~fmt.sign_bit))
    out = out | np.where(sign, fmt.sign_bit, 0)
    nan = ua.nan | ub.nan | (ua.inf & ub.inf) | (ua.zero & ub.zero)
    return np.where(nan, fmt.nan, out)


def _normalised(mant: np.ndarray, exp: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shift a bf16 mantissa until bit 7 is set (a subnormal's leading zeros go into the exponent)."""
    shift = np.where(mant == 0, 0, 8 - np.frexp(mant.astype(np.float64))[1])
    return mant << shift, exp - shift


def max_bits(a: np.ndarray, b: np.ndarray, fmt: Format) -> np.ndarray:
    """Bit patterns of IEEE 754-2019 `maximum`: a NaN wins, and -0 < +0."""
    # As sign-magnitude integers the patterns are ordered; complementing negatives makes that two's complement.
    key_a = np.where(a & fmt.sign_bit, ~a & (fmt.sign_bit - 1), a | fmt.sign_bit)
    key_b = np.where(b & fmt.sign_bit, ~b & (fmt.sign_bit - 1), b | fmt.sign_bit)
    nan = unpack(a, fmt).nan | unpack(b, fmt).nan
    return np.where(nan, fmt.nan, np.where(key_a >= key_b, a, b))


def canonical(values: np.ndarray) -> np.ndarray:
    """`values` (floating point) with every NaN replaced by the canonical one."""
    fmt = format_of(values.dtype)
    if fmt is None:
        return values
    with np.errstate(invalid="ignore"):  # ml_dtypes flags signalling NaNs
        nan = np.isnan(values)
    if not nan.any():
        return values
    bits = np.where(nan, fmt.nan, bits_of(values, fmt))
    return from_bits(bits, fmt)


def add(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a + b. fp32 uses the host's IEEE adder, which equals `add_bits` (a test compares them)."""
    fmt = _same("add", a, b)
    if fmt is None:
        return a + b
    if fmt is FP32:
        with np.errstate(all="ignore"):
            return canonical(a + b)
    return _float_op(add_bits, a, b, fmt)


def sub(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a - b, which for floating point is a + (-b)."""
    fmt = _same("sub", a, b)
    return a - b if fmt is None else add(a, _flip(b, fmt))


def mul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a * b: one rounding of the exact product. fp32 uses the host's IEEE multiplier."""
    fmt = _same("mul", a, b)
    if fmt is None:
        return a * b
    if fmt is FP32:
        with np.errstate(all="ignore"):
            return canonical(a * b)
    return _float_op(mul_bits, a, b, fmt)


def div(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a / b rounded once; bf16 only, since that is the divider that the hardware has."""
    if _same("div", a, b) is not BF16:
        raise TypeError(f"div is defined for bf16 only, got {a.dtype}")
    return _float_op(div_bits, a, b, BF16)


def maximum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """max(a, b); for floating point IEEE 754-2019 `maximum`."""
    fmt = _same("max", a, b)
    return np.maximum(a, b) if fmt is None else _float_op(max_bits, a, b, fmt)


def neg(a: np.ndarray) -> np.ndarray:
    """-a: flips the sign bit, wraps for integers, NaN is canonical."""
    fmt = format_of(a.dtype)
    return np.negative(a) if fmt is None else canonical(_flip(a, fmt))


def _flip(a: np.ndarray, fmt: Format) -> np.ndarray:
    return from_bits(bits_of(a, fmt) ^ fmt.sign_bit, fmt)
