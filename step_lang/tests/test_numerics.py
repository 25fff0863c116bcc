"""Arithmetic and casts against exact rational arithmetic and the host's IEEE hardware."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from step_lang import numerics as num
from step_lang.numerics import BF16, FP32, arith, bits_of, from_bits
from step_lang.numerics.formats import round_pack

SPECIAL = np.array([
    0x0000, 0x8000, 0x0001, 0x8001, 0x007F, 0x807F, 0x0080, 0x8080, 0x0100, 0x3F80, 0xBF80, 0x3F81, 0x4000, 0x7F7F,
    0xFF7F, 0x7F00, 0x7F80, 0xFF80, 0x7FC0, 0xFFC1, 0x7F81, 0x3EFF, 0x0040, 0x4B00, 0x7E80, 0xFE80,
])  # fmt: skip


def bf16_pairs(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Random patterns, near-equal exponents and magnitudes, and all pairs of the special ones."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 1 << 16, (2, count))
    near = np.clip((a & 0x7FFF) + rng.integers(-1200, 1200, count), 0, 0x7FFF) | rng.integers(0, 2, count) << 15
    grid_a, grid_b = np.meshgrid(SPECIAL, SPECIAL)
    return np.concatenate([a, a, grid_a.ravel()]), np.concatenate([b, near, grid_b.ravel()])


def fp32_pairs(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 1 << 32, (2, count))
    near = np.clip((a & 0x7FFFFFFF) + rng.integers(-(1 << 28), 1 << 28, count), 0, 0x7FFFFFFF)
    near |= rng.integers(0, 2, count) << 31
    special = np.concatenate([SPECIAL << 16, (SPECIAL << 16) | 1, (SPECIAL << 16) ^ 0xFFFF])
    grid_a, grid_b = np.meshgrid(special, special)
    return np.concatenate([a, a, grid_a.ravel()]), np.concatenate([b, near, grid_b.ravel()])


def canonical_bits(values: np.ndarray) -> np.ndarray:
    fmt = arith.format_of(values.dtype)
    assert fmt is not None
    return np.where(np.isnan(values), fmt.nan, bits_of(values, fmt))


def expect_equal(got: np.ndarray, expected: np.ndarray, *operands: np.ndarray) -> None:
    wrong = np.nonzero(got != expected)[0]
    assert not wrong.size, [tuple(hex(o[i]) for o in (*operands, got, expected)) for i in wrong[:5]]


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_bf16_equals_once_rounded_float64(name):
    """float64 has over 2*8+2 bits, so rounding its result to bf16 is the same as one rounding of the exact result
    (Figueroa 1995), except that a float64 quotient or product that lands in bf16's subnormals is still exact enough:
    its 53 bits leave more than 2*8+2 for every bf16 result at or above half the smallest subnormal."""
    a, b = bf16_pairs(150_000, 1)
    x, y = from_bits(a, BF16), from_bits(b, BF16)
    got = bits_of(getattr(num, name)(x, y), BF16)
    with np.errstate(all="ignore"):
        wide_x, wide_y = x.astype(np.float64), y.astype(np.float64)
        exact = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[name](wide_x, wide_y)
    frac, power = np.frexp(np.where(np.isfinite(exact), exact, 0))
    mag = np.abs(np.ldexp(frac, 53)).astype(np.int64)
    sticky = mag >> 1 | (mag & 1)
    expected = round_pack(np.signbit(exact), sticky, power.astype(np.int64) - 52 + BF16.offset, BF16)
    expected = np.where(np.isinf(exact), np.where(exact > 0, 0x7F80, 0xFF80), expected)
    expect_equal(got, np.where(np.isnan(exact), 0x7FC0, expected), a, b)


@pytest.mark.parametrize("fmt", [BF16, FP32], ids=lambda fmt: fmt.name)
def test_round_pack_against_fractions(fmt):
    """round_pack is the foundation of everything else, so it is checked by brute force against exact rationals."""
    rng = np.random.default_rng(2)
    length = rng.integers(0, 50, 3000)
    mag = (rng.integers(0, 1 << 50, 3000) >> length) & ~((np.int64(1) << rng.integers(0, 30, 3000)) - 1)
    exp = np.where(rng.integers(0, 2, 3000), rng.integers(-90, 40, 3000), rng.integers(-300, 300, 3000))
    got = round_pack(np.zeros(3000, bool), mag, exp, fmt)
    for m, e, bits in zip(mag.tolist(), exp.tolist(), got.tolist(), strict=True):
        exact = Fraction(m) * Fraction(2) ** (e - fmt.offset)
        if bits == fmt.inf:
            assert exact >= Fraction(2) ** 128 - Fraction(2) ** (127 - fmt.mant_bits - 1)
            continue

        def value(pattern):
            field, frac = pattern >> fmt.mant_bits, pattern & ((1 << fmt.mant_bits) - 1)
            mant = frac | (1 << fmt.mant_bits) if field else frac
            return Fraction(mant) * Fraction(2) ** (max(field, 1) - fmt.offset)

        error = abs(value(bits) - exact)
        for neighbour in (bits - 1, bits + 1):
            if 0 <= neighbour <= fmt.inf:
                other = abs(value(neighbour) - exact)
                assert error < other or (error == other and bits % 2 == 0)


@pytest.mark.parametrize("name", ["add", "mul"])
def test_fp32_definition_equals_host(name):
    a, b = fp32_pairs(200_000, 3)
    with np.errstate(all="ignore"):
        host = {"add": np.add, "mul": np.multiply}[name](from_bits(a, FP32), from_bits(b, FP32))
    got = {"add": arith.add_bits, "mul": arith.mul_bits}[name](a, b, FP32)
    expect_equal(got, canonical_bits(host), a, b)
    expect_equal(bits_of(getattr(num, name)(from_bits(a, FP32), from_bits(b, FP32)), FP32), got, a, b)


def test_fp32_sub_is_add_of_negated():
    a, b = fp32_pairs(20_000, 4)
    got = bits_of(num.sub(from_bits(a, FP32), from_bits(b, FP32)), FP32)
    expect_equal(got, arith.add_bits(a, b ^ 0x80000000, FP32), a, b)


@pytest.mark.parametrize("fmt,pairs", [(BF16, bf16_pairs), (FP32, fp32_pairs)], ids=["bf16", "fp32"])
def test_maximum(fmt, pairs):
    a, b = pairs(50_000, 5)
    got = bits_of(num.maximum(from_bits(a, fmt), from_bits(b, fmt)), fmt)
    with np.errstate(invalid="ignore"):
        x, y = (from_bits(v, fmt).astype(np.float64) for v in (a, b))
    nan = np.isnan(x) | np.isnan(y)
    pick_a = (x > y) | ((x == y) & ~np.signbit(x))
    expect_equal(got, np.where(nan, fmt.nan, np.where(pick_a, a, b)), a, b)


def test_zero_signs():
    plus, minus = from_bits(np.array([0]), FP32), from_bits(np.array([0x80000000]), FP32)
    assert bits_of(num.maximum(minus, plus), FP32) == 0 == bits_of(num.maximum(plus, minus), FP32)
    assert bits_of(num.add(minus, minus), FP32) == 0x80000000
    assert bits_of(num.add(minus, plus), FP32) == 0
    one = np.array([1], dtype=BF16.dtype)
    assert bits_of(num.sub(one, one), BF16) == 0


def test_neg():
    bits = np.arange(1 << 16)
    nan = (bits & 0x7FFF) > 0x7F80
    expect_equal(bits_of(num.neg(from_bits(bits, BF16)), BF16), np.where(nan, 0x7FC0, bits ^ 0x8000), bits)
    assert num.neg(np.array([-128, 5], np.int8)).tolist() == [-128, -5]


@pytest.mark.parametrize("dtype,bits", [(np.int8, 8), (np.int32, 32), (np.uint32, 32)])
def test_integers_wrap(dtype, bits):
    rng = np.random.default_rng(6)
    info = np.iinfo(dtype)
    a = np.concatenate([rng.integers(info.min, info.max, 500, endpoint=True), [info.min, info.max, info.min]])
    b = np.concatenate([rng.integers(info.min, info.max, 500, endpoint=True), [info.min, info.max, -1 % 128]])
    for name, op in [("add", int.__add__), ("sub", int.__sub__), ("mul", int.__mul__), ("max", max)]:
        function = {"max": num.maximum}.get(name) or getattr(num, name)
        got = function(a.astype(dtype), b.astype(dtype))
        assert got.dtype == dtype
        exact = [op(x, y) % (1 << bits) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
        assert (got.astype(np.int64) % (1 << bits)).tolist() == exact


def test_mixed_types_are_refused():
    with pytest.raises(TypeError, match="one type, got int8 and float32"):
        num.add(np.zeros(1, np.int8), np.zeros(1, np.float32))
    with pytest.raises(TypeError, match="bf16 only"):
        num.div(np.ones(1, np.float32), np.ones(1, np.float32))
    with pytest.raises(TypeError, match="cannot cast to 'fp8'"):
        num.cast(np.ones(1, np.float32), "fp8")


# Casts


def test_bf16_to_fp32_and_back():
    bits = np.arange(1 << 16)
    wide = num.cast(from_bits(bits, BF16), "fp32")
    nan = (bits & 0x7FFF) > 0x7F80
    expect_equal(bits_of(wide, FP32), np.where(nan, FP32.nan, bits << 16), bits)
    expect_equal(bits_of(num.cast(wide, "bf16"), BF16), np.where(nan, BF16.nan, bits), bits)


def test_fp32_to_bf16_equals_ml_dtypes():
    a, _ = fp32_pairs(200_000, 7)
    got = bits_of(num.cast(from_bits(a, FP32), "bf16"), BF16)
    with np.errstate(all="ignore"):
        expected = canonical_bits(from_bits(a, FP32).astype(ml_dtypes.bfloat16))
    expect_equal(got, expected, a)


@pytest.mark.parametrize("fmt", [BF16, FP32], ids=lambda fmt: fmt.name)
@pytest.mark.parametrize("target", ["int8", "int32", "u32"])
def test_float_to_integer(fmt, target):
    bits = np.arange(1 << 16) << (16 if fmt is FP32 else 0)
    if fmt is FP32:
        rng = np.random.default_rng(8)
        small = rng.uniform(-300, 300, 40_000).astype(np.float32)
        ties = (np.arange(-400, 400) / 2).astype(np.float32)
        bits = np.concatenate([bits, rng.integers(0, 1 << 32, 40_000), bits_of(small, FP32), bits_of(ties, FP32)])
    with np.errstate(invalid="ignore"):
        values = from_bits(bits, fmt).astype(np.float64)
    info = np.iinfo(num.DTYPES[target])
    expected = np.rint(np.clip(np.nan_to_num(values, nan=0.0, posinf=2.0**40, neginf=-(2.0**40)), info.min, info.max))
    expect_equal(num.cast(from_bits(bits, fmt), target).astype(np.int64), expected.astype(np.int64), bits)


@pytest.mark.parametrize("source", ["int8", "int32", "u32", "bool"])
def test_integer_to_float(source):
    rng = np.random.default_rng(9)
    dtype = num.DTYPES[source]
    if source == "bool":
        values = np.array([False, True])
    else:
        info = np.iinfo(dtype)
        edges = [info.min, info.max, 0, 1, 127, 100]
        values = np.concatenate([edges, rng.integers(info.min, info.max, 20_000, endpoint=True)]).astype(dtype)
        values = np.concatenate([values, (values.astype(np.int64) >> 12).astype(dtype)])
    assert num.cast(values, "fp32").tolist() == values.astype(np.float64).astype(np.float32).tolist()
    wide = values.astype(np.int64)
    for value, got in zip(wide.tolist()[:3000], num.cast(values, "bf16").astype(np.float64).tolist(), strict=False):
        ulp = 2.0 ** max(abs(value).bit_length() - 8, 0)
        assert abs(got - value) <= ulp / 2
        if abs(got - value) == ulp / 2:
            assert (int(got) // int(ulp)) % 2 == 0 or int(abs(got)) == 1 << int(abs(got)).bit_length() - 1


def test_integer_to_integer_saturates():
    assert num.cast(np.array([300, -300, 5], np.int32), "int8").tolist() == [127, -128, 5]
    assert num.cast(np.array([-1, 7], np.int8), "u32").tolist() == [0, 7]
    assert num.cast(np.array([2**32 - 1], np.uint32), "int32").tolist() == [2**31 - 1]
