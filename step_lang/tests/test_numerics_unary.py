"""Unary functions against the exact result, on every bf16 input."""

from __future__ import annotations

import numpy as np
import pytest

from step_lang.numerics import BF16, MAX_ULP, UNARY, from_bits, unary

ALL = from_bits(np.arange(1 << 16), BF16)
C = 2 * np.sqrt(2 / np.pi)


def sigmoid(x):
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1 + small)


EXACT = {
    "exp": np.exp,
    "sigmoid": sigmoid,
    "silu": lambda x: x * sigmoid(x),
    "gelu": lambda x: x * sigmoid(C * (x + 0.044715 * x**3)),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x,
}

# Bit patterns that the limits at the ends decide: input -> output.
PINNED = {
    "exp": {0x0000: 0x3F80, 0x8000: 0x3F80, 0x0001: 0x3F80, 0x8001: 0x3F80, 0x7F80: 0x7F80, 0xFF80: 0, 0x7F7F: 0x7F80,
            0xFF7F: 0},
    "sigmoid": {0x0000: 0x3F00, 0x8000: 0x3F00, 0x7F80: 0x3F80, 0xFF80: 0, 0x7F7F: 0x3F80, 0xFF7F: 0},
    "silu": {0x0000: 0, 0x8000: 0x8000, 0x7F80: 0x7F80, 0xFF80: 0x8000, 0x7F7F: 0x7F7F, 0xFF7F: 0x8000, 0x0002: 0x0001},
    "gelu": {0x0000: 0, 0x8000: 0x8000, 0x7F80: 0x7F80, 0xFF80: 0x8000, 0x7F7F: 0x7F7F, 0xFF7F: 0x8000, 0x0002: 0x0001},
    "rsqrt": {0x0000: 0x7F80, 0x8000: 0xFF80, 0x7F80: 0, 0xFF80: 0x7FC0, 0xBF80: 0x7FC0, 0x8001: 0x7FC0,
              0x3F80: 0x3F80, 0x4080: 0x3F00},
    "reciprocal": {0x0000: 0x7F80, 0x8000: 0xFF80, 0x7F80: 0, 0xFF80: 0x8000, 0x3F80: 0x3F80, 0x0001: 0x7F80,
                   0x7F00: 0x0040},
}


def test_every_function_is_covered():
    assert set(UNARY) == set(EXACT) == set(PINNED) == set(MAX_ULP)


@pytest.mark.parametrize("name", sorted(UNARY))
def test_error_in_ulps(name):
    with np.errstate(all="ignore"):
        x = ALL.astype(np.float64)
        exact = EXACT[name](x)
        got = unary(name, ALL).astype(np.float64)
        finite = np.isfinite(x) & np.isfinite(exact) & (np.abs(exact) < 2.0**128 - 2.0**119)
        ulp = np.exp2(np.maximum(np.floor(np.log2(np.maximum(np.abs(exact), 2.0**-300))), -126) - 7)
        error = np.where(finite, np.abs(got - exact) / ulp, 0)
    assert np.isfinite(got[finite]).all()
    assert MAX_ULP[name] - 0.01 < error.max() <= MAX_ULP[name] < 1
    overflow = np.isfinite(x) & (np.abs(exact) >= 2.0**128 - 2.0**119)
    assert np.isinf(got[overflow]).all() and (np.sign(got[overflow]) == np.sign(exact[overflow])).all()


@pytest.mark.parametrize("name", sorted(UNARY))
def test_special_values(name):
    bits = unary(name, ALL).view(np.uint16)
    for source, expected in PINNED[name].items():
        assert bits[source] == expected, f"{name}({source:#06x}) = {bits[source]:#06x}, not {expected:#06x}"
    is_nan = (np.arange(1 << 16) & 0x7FFF) > 0x7F80
    assert (bits[is_nan] == 0x7FC0).all()
    out_nan = (bits & 0x7FFF) > 0x7F80
    assert (bits[out_nan] == 0x7FC0).all()


@pytest.mark.parametrize("name", ["exp", "sigmoid"])
def test_monotonic(name):
    """A rounding slip between two table entries would show as a step down."""
    order = np.concatenate([np.arange(0xFF80, 0x8000, -1), np.arange(0, 0x7F81)])
    values = unary(name, from_bits(order, BF16)).astype(np.float64)
    assert (np.diff(values[np.isfinite(values)]) >= 0).all()


def test_shape_is_kept():
    assert unary("exp", ALL.reshape(4, 128, 128)).shape == (4, 128, 128)
