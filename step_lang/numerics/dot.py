"""Dot products: groups of exact products, aligned, summed as integers and rounded once.

`dot_group` is the definition, `matmul` the fold over K that SPEC's `matmul` and `accum(matmul)` perform. Twins:
`step_hw/cells/dot.py` (bf16) and `step_hw/cells/int8_dot.py`.

Definition of the bf16 group
----------------------------
Each product is exact: a 16-bit magnitude `p = mant_a * mant_b` and an exponent `e = exp_a + exp_b`, worth
`p * 2**(e - 268)` (a subnormal operand has exponent 1 and no hidden bit; it is not normalised). With `E` the largest
`e` among the nonzero products, each magnitude becomes `(p << WINDOW) >> (E - e)`: aligned to E with `WINDOW = 15` bits
below the product's last, the rest cut off. The signed sum is an exact integer, below 2**(31 + log2 G), and one rounding
(nearest even, gradual underflow) of `sum * 2**(E - 283)` makes it fp32. A sum of zero is +0; a sum that underflows
keeps its sign. Any NaN operand, infinity times zero, or infinities of both signs make the canonical NaN; otherwise an
infinite product makes that infinity.

Error bound
-----------
Let `|x|+` be `max(|x|, 2**-126)`: a subnormal counts as the smallest normal number. Then

    |dot_group(a, b) - sum(a_i * b_i)| <= G * 2**-29 * max{|a_i|+ * |b_i|+ : a_i*b_i != 0} + ulp32(result) / 2

Proof. A product with `e = E` is not cut, since its shift is 0. Each other one loses less than one unit of the window,
2**(E - 283), so the integer sum is off by less than G * 2**(E - 283). Take the product that has exponent E. A normal
operand has `|a| >= 2**(exp_a - 127)`; a subnormal one has exp_a = 1 and `|a|+ = 2**-126 = 2**(exp_a - 127)`. Hence
`|a|+ * |b|+ >= 2**(E - 254)`, and G * 2**(E - 283) = G * 2**-29 * 2**(E - 254). The final rounding adds half an ulp of
fp32, which is 2**-150 in the subnormal range. Products with `E - e <= 15` lose nothing, so a group whose
exponents span at most 15 is rounded correctly.
"""

from __future__ import annotations

import numpy as np

from .arith import add
from .formats import BF16, FP32, Unpacked, bits_of, from_bits, round_pack, unpack

__all__ = ["WINDOW", "dot_group", "fold", "group_dots", "matmul"]

#: Fraction bits kept below the last bit of the product with the largest exponent.
WINDOW = 15
#: A product's unit at exponent sum e weighs 2**(e - PRODUCT_OFFSET).
PRODUCT_OFFSET = 2 * BF16.offset
_MAX_SHIFT = 16 + WINDOW
#: Products in flight at once in the numpy path; bounds its memory to about 150 MB.
_CHUNK = 1 << 20
#: Above this many products a compiled loop is worth its start-up.
_COMPILE_ABOVE = 1 << 24


def dot_group(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """fp32 `[...]` dot products of bf16 `a[..., G]` and `b[..., G]` (broadcast against each other)."""
    return from_bits(_dot_bits(_fields(bits_of(a, BF16)), _fields(bits_of(b, BF16))), FP32)


def _fields(bits: np.ndarray) -> Unpacked:
    return unpack(bits, BF16)


def _dot_bits(a: Unpacked, b: Unpacked) -> np.ndarray:
    """fp32 bit patterns (int64) of the dot products over the last axis."""
    product = a.mant * b.mant
    exp = a.exp + b.exp
    top = np.where(product != 0, exp, 0).max(axis=-1, keepdims=True)
    aligned = (product << WINDOW) >> np.clip(top - exp, 0, _MAX_SHIFT)
    negative = a.sign != b.sign
    total = np.where(negative, -aligned, aligned).sum(axis=-1)
    top = top[..., 0]
    out = round_pack(total < 0, np.abs(total), top - WINDOW - PRODUCT_OFFSET + FP32.offset, FP32)

    special = a.nan.any() or a.inf.any() or b.nan.any() or b.inf.any()
    if not special:
        return out
    nan = a.nan | b.nan | (a.inf & b.zero) | (a.zero & b.inf)
    inf = (a.inf | b.inf) & ~nan
    plus, minus = (inf & ~negative).any(axis=-1), (inf & negative).any(axis=-1)
    out = np.where(plus, FP32.inf, np.where(minus, FP32.inf | FP32.sign_bit, out))
    return np.where(nan.any(axis=-1) | (plus & minus), FP32.nan, out)


def _grouped(a: np.ndarray, b: np.ndarray, group: int) -> tuple[np.ndarray, np.ndarray]:
    """`a[n, M, K]` as `[n, M, K/G, G]` and `b[n, K, N]` as `[n, N, K/G, G]`, K padded with zeros to a multiple."""
    n, rows, depth = a.shape
    cols = b.shape[2]
    groups = -(-depth // group)
    pad = groups * group - depth
    bt = np.swapaxes(b, 1, 2)
    if pad:
        a = np.concatenate([a, np.zeros((n, rows, pad), dtype=a.dtype)], axis=2)
        bt = np.concatenate([bt, np.zeros((n, cols, pad), dtype=b.dtype)], axis=2)
    return (
        np.ascontiguousarray(a).reshape(n, rows, groups, group),
        np.ascontiguousarray(bt).reshape(n, cols, groups, group),
    )


def _check(a: np.ndarray, b: np.ndarray) -> None:
    if a.ndim != 3 or b.ndim != 3 or a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise ValueError(f"matmul needs a[n, M, K] and b[n, K, N], got {a.shape} and {b.shape}")
    if a.dtype != b.dtype or a.dtype not in (BF16.dtype, np.dtype(np.int8)):
        raise TypeError(f"matmul multiplies bf16 by bf16 or int8 by int8, got {a.dtype} and {b.dtype}")


def group_dots(a: np.ndarray, b: np.ndarray, group: int) -> np.ndarray:
    """`[n, K/G, M, N]` dot products of each group of `group` along K, of `a[n, M, K]` and `b[n, K, N]`.

    bf16 gives fp32 (`dot_group`), int8 gives int32. These are what a fold adds to its accumulator, in order.
    """
    _check(a, b)
    ga, gb = _grouped(a, b, group)
    n, rows, groups, _ = ga.shape
    cols = gb.shape[1]
    if a.dtype == np.int8:
        wide = np.einsum("nmkg,njkg->nkmj", ga.astype(np.int64), gb.astype(np.int64))
        return wide.astype(np.int32)
    if n * rows * cols * groups * group > _COMPILE_ABOVE:
        kernel = _compiled()
        if kernel is not None:
            return kernel.group_dots(ga.view(np.uint16), gb.view(np.uint16))
    out = np.empty((n, groups, rows, cols), dtype=np.float32)
    bits_a, bits_b = bits_of(ga, BF16), bits_of(gb, BF16)
    step = max(1, _CHUNK // max(1, cols * group))
    for i in range(n):
        for k in range(groups):
            fb = _fields(bits_b[i, None, :, k, :])
            for first in range(0, rows, step):
                fa = _fields(bits_a[i, first : first + step, None, k, :])
                out[i, k, first : first + step] = from_bits(_dot_bits(fa, fb), FP32)
    return out


def fold(acc: np.ndarray, dots: np.ndarray) -> np.ndarray:
    """`acc[n, M, N]` plus `dots[n, K/G, M, N]`, one fp32 (or wrapping int32) addition a group, k ascending."""
    for k in range(dots.shape[1]):
        acc = add(acc, dots[:, k])
    return acc


def matmul(a: np.ndarray, b: np.ndarray, group: int, acc: np.ndarray | None = None) -> np.ndarray:
    """`[n, M, N]` product of `a[n, M, K]` and `b[n, K, N]`, added group by group to `acc` (default +0).

    bf16 operands give fp32, int8 operands int32. A K that `group` does not divide ends in a zero-padded group.
    """
    _check(a, b)
    n, rows, _ = a.shape
    cols = b.shape[2]
    result = np.dtype(np.float32 if a.dtype == BF16.dtype else np.int32)
    if acc is None:
        acc = np.zeros((n, rows, cols), dtype=result)
    elif acc.shape != (n, rows, cols) or acc.dtype != result:
        raise ValueError(f"accumulator must be {result} {(n, rows, cols)}, got {acc.dtype} {acc.shape}")
    # Fold slice by slice of n so that the group dots of a large batch need not exist at once.
    block = max(1, (1 << 24) // max(1, rows * cols * -(-a.shape[2] // group)))
    if n <= block:
        return fold(acc, group_dots(a, b, group))
    parts = [
        fold(acc[i : i + block], group_dots(a[i : i + block], b[i : i + block], group)) for i in range(0, n, block)
    ]
    return np.concatenate(parts)


def _compiled():
    """The compiled kernel module, or None where numba is not installed (same results, slower)."""
    try:
        from . import compiled_dot
    except ImportError:
        return None
    return compiled_dot
