"""Conversions between element types.

Float to float rounds to nearest even; integer to float likewise, once. Float to integer rounds to nearest even, then
saturates, and NaN becomes 0. Integer to integer saturates. `bool` converts like the integer 0 or 1, and nothing
converts to `bool`. Twin: `step_hw/cells/cast.py`.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from .arith import canonical, format_of
from .formats import BF16, FP32, bits_of, from_bits, round_pack, unpack

__all__ = ["DTYPES", "cast"]

DTYPES: dict[str, np.dtype] = {
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "fp32": np.dtype(np.float32),
    "int8": np.dtype(np.int8),
    "int32": np.dtype(np.int32),
    "u32": np.dtype(np.uint32),
    "bool": np.dtype(np.bool_),
}


def cast(values: np.ndarray, target: str) -> np.ndarray:
    """`values` converted to the element type named `target` (a key of `DTYPES`)."""
    if target not in DTYPES or target == "bool":
        known = ", ".join(name for name in DTYPES if name != "bool")
        raise TypeError(f"cannot cast to {target!r}; known targets: {known}")
    dtype = DTYPES[target]
    source, result = format_of(values.dtype), format_of(dtype)
    if source is None and values.dtype.kind not in "iub":
        raise TypeError(f"cannot cast from {values.dtype}")
    if values.dtype == dtype:
        return canonical(values)
    if source is not None and result is not None:
        return _float_to_float(values)
    if source is not None:
        fields = unpack(bits_of(values, source), source)
        return _saturate(_rounded(fields, source.offset), dtype)
    wide = values.astype(np.int64)
    if result is None:
        return _saturate(wide, dtype)
    sign = wide < 0
    exp = np.full(wide.shape, result.offset, dtype=np.int64)
    return from_bits(round_pack(sign, np.abs(wide), exp, result), result)


def _float_to_float(values: np.ndarray) -> np.ndarray:
    if values.dtype == BF16.dtype:  # exact: fp32 has all of bf16's values, in the upper half of its pattern
        return canonical(from_bits(bits_of(values, BF16) << 16, FP32))
    bits = bits_of(values, FP32)
    kept = bits >> 16
    rest = bits & 0xFFFF
    up = (rest > 0x8000) | ((rest == 0x8000) & ((kept & 1) != 0))
    nan = (bits & 0x7FFFFFFF) > FP32.inf
    return from_bits(np.where(nan, BF16.nan, kept + up), BF16)


def _rounded(fields, offset: int) -> np.ndarray:
    """The nearest integer (ties to even) as int64, clipped to +-2**33, beyond every integer type; NaN is 0."""
    shift = fields.exp - offset
    left = np.clip(shift, 0, 33)
    right = np.clip(-shift, 0, 26)
    kept = (fields.mant << left) >> right
    rest = fields.mant & ((np.int64(1) << right) - 1)
    half = (np.int64(1) << right) >> 1
    up = (rest > half) | ((rest == half) & (right > 0) & ((kept & 1) != 0))
    limit = np.int64(1) << 33
    magnitude = np.where(fields.inf, limit, np.minimum(kept + up, limit))
    return np.where(fields.nan, 0, np.where(fields.sign, -magnitude, magnitude))


def _saturate(wide: np.ndarray, dtype: np.dtype) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.clip(wide, info.min, info.max).astype(dtype)
