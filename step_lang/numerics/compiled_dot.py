"""The dot-group loop of `dot.py`, compiled by numba for large matrix products. A test holds the two equal.

Importing this module needs numba; `dot.py` imports it only when a product is large enough to pay for that.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["group_dots"]

_NAN = np.uint32(0x7FC00000)
_INF = np.uint32(0x7F800000)
_MINUS_INF = np.uint32(0xFF800000)


def _round_pack(total, top):
    """fp32 pattern of `total * 2**(top - 283)`; total is a nonzero int64 below 2**53 in magnitude."""
    sign = np.uint32(0)
    mag = total
    if total < 0:
        sign = np.uint32(0x80000000)
        mag = -total
    length = 0
    probe = mag
    while probe >= 65536:
        probe >>= 16
        length += 16
    while probe > 0:
        probe >>= 1
        length += 1
    exp = top - 283 + 150
    result_exp = exp + length - 24
    if result_exp < 1:
        result_exp = 1
    drop = result_exp - exp
    if drop <= 0:
        kept = mag << (-drop)
    else:
        if drop > 62:
            drop = 62
        kept = mag >> drop
        rest = mag & ((np.int64(1) << drop) - 1)
        half = np.int64(1) << (drop - 1)
        if rest > half or (rest == half and (kept & 1) != 0):
            kept += 1
    packed = ((np.int64(result_exp) - 1) << 23) + kept
    if packed > 0x7F800000:
        packed = np.int64(0x7F800000)
    return np.uint32(packed) | sign


def _fill(mant_a, exp_a, mant_b, exp_b, special_a, special_b, bits_a, bits_b, out):
    n, rows, groups, width = mant_a.shape
    cols = mant_b.shape[1]
    product = np.empty(width, np.int64)
    exps = np.empty(width, np.int64)
    for i in range(n):
        for k in range(groups):
            for r in range(rows):
                for c in range(cols):
                    if special_a[i, r, k] or special_b[i, c, k]:
                        nan = False
                        plus = False
                        minus = False
                        for g in range(width):
                            x = bits_a[i, r, k, g]
                            y = bits_b[i, c, k, g]
                            mx = x & 0x7FFF
                            my = y & 0x7FFF
                            if mx > 0x7F80 or my > 0x7F80:
                                nan = True
                            elif mx == 0x7F80 or my == 0x7F80:
                                if mx == 0 or my == 0:
                                    nan = True
                                elif (x ^ y) & 0x8000:
                                    minus = True
                                else:
                                    plus = True
                        if nan or (plus and minus):
                            out[i, k, r, c] = _NAN
                        elif plus:
                            out[i, k, r, c] = _INF
                        elif minus:
                            out[i, k, r, c] = _MINUS_INF
                        else:
                            out[i, k, r, c] = 0
                        if nan or plus or minus:
                            continue
                    top = np.int64(0)
                    for g in range(width):
                        p = np.int64(mant_a[i, r, k, g]) * np.int64(mant_b[i, c, k, g])
                        e = np.int64(exp_a[i, r, k, g]) + np.int64(exp_b[i, c, k, g])
                        product[g] = p
                        exps[g] = e
                        if p != 0 and e > top:
                            top = e
                    total = np.int64(0)
                    for g in range(width):
                        shift = top - exps[g]
                        p = product[g]
                        if p == 0 or shift > 31:
                            continue
                        if p < 0:
                            total -= ((-p) << 15) >> shift
                        else:
                            total += (p << 15) >> shift
                    out[i, k, r, c] = 0 if total == 0 else _round_pack(total, top)


def _jit(function):
    """Compile with an on-disk cache where there is a place for one."""
    try:
        return njit(function, cache=True)
    except RuntimeError:  # no writable directory for the cache
        return njit(function)


_round_pack = _jit(_round_pack)
_fill = _jit(_fill)


def _split(bits: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Signed mantissas (int16), exponents (int16), and per group whether any operand is infinite or NaN."""
    field = (bits >> 7) & 255
    frac = (bits & 127).astype(np.int16)
    mant = np.where(field == 0, frac, frac | 128).astype(np.int16)
    mant = np.where(bits & 0x8000, -mant, mant).astype(np.int16)
    exp = np.maximum(field, 1).astype(np.int16)
    return mant, exp, (field == 255).any(axis=-1)


def group_dots(bits_a: np.ndarray, bits_b: np.ndarray) -> np.ndarray:
    """fp32 `[n, K/G, M, N]` from bf16 patterns `[n, M, K/G, G]` and `[n, N, K/G, G]` (uint16)."""
    n, rows, groups, _ = bits_a.shape
    out = np.empty((n, groups, rows, bits_b.shape[1]), dtype=np.uint32)
    mant_a, exp_a, special_a = _split(bits_a)
    mant_b, exp_b, special_b = _split(bits_b)
    _fill(mant_a, exp_a, mant_b, exp_b, special_a, special_b, bits_a, bits_b, out)
    return out.view(np.float32)
