"""Operands that are hard on a dot product; also for the benches of the cells."""

from __future__ import annotations

import numpy as np

__all__ = ["adversarial"]

SPECIALS = [
    0x0000, 0x8000, 0x0001, 0x8001, 0x007F, 0x0080, 0x7F7F, 0xFF7F, 0x3F80, 0xBF80, 0x7F80, 0xFF80, 0x7FC0, 0x7F81,
]  # fmt: skip


def adversarial(count: int, group: int, seed: int, finite: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """bf16 groups of several kinds: wild exponents, narrow exponents, near-cancellation, subnormal, overflow."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 1 << 16, (2, count, group))
    kind = np.arange(count) % 6
    narrow = (rng.integers(100, 140, (count, 1)) + rng.integers(0, 12, (count, group))) << 7
    sign_frac = rng.integers(0, 1 << 16, (count, group)) & 0x807F
    a = np.where((kind == 1)[:, None], narrow | sign_frac, a)
    b = np.where((kind == 1)[:, None], (narrow[:, ::-1]) | (b & 0x807F), b)
    # Cancellation: pairs of opposite products, one of them off by an ulp or by nothing, around a small rest.
    half = group // 2
    cancel_a, cancel_b = a.copy(), b.copy()
    cancel_a[:, half : 2 * half] = cancel_a[:, :half] ^ 0x8000
    cancel_b[:, half : 2 * half] = cancel_b[:, :half] ^ rng.integers(0, 2, (count, half))
    pick = ((kind == 2) | (kind == 3))[:, None]
    a, b = np.where(pick, cancel_a, a), np.where(pick, cancel_b, b)
    a = np.where((kind == 3)[:, None], (a & 0x807F) | (120 + (a >> 7 & 15)) << 7, a)
    a = np.where((kind == 4)[:, None], a & 0x80FF, a)
    b = np.where((kind == 4)[:, None], np.where(rng.integers(0, 2, (count, 1)), b & 0x80FF, b), b)
    a = np.where((kind == 5)[:, None], (a & 0x807F) | (250 << 7), a)
    b = np.where((kind == 5)[:, None], (b & 0x807F) | ((126 + (b >> 7 & 7)) << 7), b)
    a = np.where(rng.random((count, group)) < 0.08, a & 0x8000, a)
    if finite:
        a = np.where((a & 0x7F80) == 0x7F80, a ^ 0x4000, a)
        b = np.where((b & 0x7F80) == 0x7F80, b ^ 0x4000, b)
    else:
        spice = rng.random((count, group))
        a = np.where(spice < 0.03, rng.choice(SPECIALS, (count, group)), a)
        b = np.where((spice > 0.02) & (spice < 0.05), rng.choice(SPECIALS, (count, group)), b)
    return a, b
