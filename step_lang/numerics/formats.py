"""Floating-point formats as bit patterns: unpacking, rounding, packing.

Everything here is integer arithmetic on `numpy` arrays of bit patterns, so it reads the same as the gates do
(`step_hw/cells/floats.py` is its Amaranth twin). A finite value is `(-1)**sign * mant * 2**(exp - offset)`, where
`mant` holds the hidden bit, and `exp` is the biased exponent with a subnormal's 0 replaced by 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np

__all__ = ["BF16", "FP32", "Format", "Unpacked", "bit_length", "bits_of", "from_bits", "round_pack", "unpack"]


@dataclass(frozen=True)
class Format:
    """One IEEE-754-style binary format with an 8-bit exponent.

    `mant_bits` counts the stored fraction (7 for bf16, 23 for fp32).
    """

    name: str
    mant_bits: int
    dtype: np.dtype
    bits_dtype: np.dtype

    bias = 127
    exp_bits = 8

    @property
    def width(self) -> int:
        return 1 + self.exp_bits + self.mant_bits

    @property
    def offset(self) -> int:
        """A unit of `mant` at biased exponent e weighs 2**(e - offset)."""
        return self.bias + self.mant_bits

    @property
    def inf(self) -> int:
        return 255 << self.mant_bits

    @property
    def nan(self) -> int:
        """The canonical NaN: quiet, positive, no payload."""
        return self.inf | 1 << (self.mant_bits - 1)

    @property
    def sign_bit(self) -> int:
        return 1 << (self.width - 1)


BF16 = Format("bf16", 7, np.dtype(ml_dtypes.bfloat16), np.dtype(np.uint16))
FP32 = Format("fp32", 23, np.dtype(np.float32), np.dtype(np.uint32))


@dataclass(frozen=True)
class Unpacked:
    """Fields of an array of floating-point values; `mant` and `exp` are int64, the rest bool."""

    sign: np.ndarray
    exp: np.ndarray
    mant: np.ndarray
    nan: np.ndarray
    inf: np.ndarray
    zero: np.ndarray


def bits_of(values: np.ndarray, fmt: Format) -> np.ndarray:
    """Bit patterns of an array of `fmt.dtype`, as int64."""
    array = np.ascontiguousarray(values)
    if array.dtype != fmt.dtype:
        raise TypeError(f"expected an array of {fmt.name}, got {array.dtype}")
    return array.view(fmt.bits_dtype).astype(np.int64)


def from_bits(bits: np.ndarray, fmt: Format) -> np.ndarray:
    """The array of `fmt.dtype` with these bit patterns."""
    return np.ascontiguousarray(np.asarray(bits).astype(fmt.bits_dtype)).view(fmt.dtype)


def unpack(bits: np.ndarray, fmt: Format) -> Unpacked:
    """Split bit patterns (int64) into fields. `mant` and `exp` mean nothing where `nan` or `inf` is set."""
    field = (bits >> fmt.mant_bits) & 255
    frac = bits & ((1 << fmt.mant_bits) - 1)
    normal = field != 0
    special = field == 255
    return Unpacked(
        sign=(bits & fmt.sign_bit) != 0,
        exp=np.where(normal, field, 1),
        mant=np.where(normal, frac | (1 << fmt.mant_bits), frac),
        nan=special & (frac != 0),
        inf=special & (frac == 0),
        zero=~normal & (frac == 0),
    )


def bit_length(mag: np.ndarray) -> np.ndarray:
    """Number of significant bits of each of `mag` (int64, 0 <= mag < 2**53)."""
    return np.frexp(mag.astype(np.float64))[1].astype(np.int64)


def round_pack(sign: np.ndarray, mag: np.ndarray, exp: np.ndarray, fmt: Format) -> np.ndarray:
    """Bit patterns of `(-1)**sign * mag * 2**(exp - fmt.offset)`, rounded once: to nearest, ties to even.

    `mag` is int64 with 0 <= mag < 2**53, `exp` int64. A result below the normal range becomes subnormal (gradual
    underflow), one above it infinity, `mag = 0` a zero of the given sign. A caller that dropped bits below `mag` may
    set mag's bit 0 for them ("sticky") as long as mag keeps at least two bits below the result's last.
    """
    length = bit_length(mag)
    # Exponent of the result if its leading bit is mag's; below 1 the result is subnormal and keeps exponent 1.
    result_exp = np.maximum(exp + length - (fmt.mant_bits + 1), 1)
    drop = result_exp - exp  # bits of mag below the result's last; negative: append zeros
    left = np.where(drop < 0, np.minimum(-drop, fmt.mant_bits), 0)
    right = np.clip(drop, 0, 62)
    kept = (mag << left) >> right
    rest = mag & ((np.int64(1) << right) - 1)
    half = (np.int64(1) << right) >> 1
    up = (rest > half) | ((rest == half) & (right > 0) & ((kept & 1) != 0))
    # kept has the hidden bit, which adds one to the exponent field; a carry out of rounding lands there as well.
    packed = ((result_exp - 1) << fmt.mant_bits) + kept + up
    packed = np.where(mag == 0, 0, np.minimum(packed, fmt.inf))
    return packed | np.where(sign, fmt.sign_bit, 0)
