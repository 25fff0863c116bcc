"""Dot product groups and the fold over K: against exact rationals, the stated bound, and the compiled loop."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from step_lang.errors import BadParameter
from step_lang.numerics import BF16, FP32, Numerics, arith, bits_of, dot, dot_group, from_bits
from step_lang.tests.dot_vectors import adversarial


def value(bits: int) -> Fraction:
    """Exact value of a finite bf16 pattern."""
    field, frac = bits >> 7 & 255, bits & 127
    mant = frac | 128 if field else frac
    return (-1) ** (bits >> 15) * Fraction(mant) * Fraction(2) ** (max(field, 1) - 134)


def fp32_value(bits: int) -> Fraction:
    field, frac = bits >> 23 & 255, bits & 0x7FFFFF
    mant = frac | 0x800000 if field else frac
    return (-1) ** (bits >> 31) * Fraction(mant) * Fraction(2) ** (max(field, 1) - 150)


def ulp32(bits: int) -> Fraction:
    return Fraction(2) ** (max(bits >> 23 & 255, 1) - 150)


@pytest.mark.parametrize("group", [2, 4, 16])
def test_error_bound_exact(group):
    """|result - exact| <= G * 2**-29 * max |a|+ |b|+ + ulp/2, in exact rational arithmetic; overflow only where due."""
    a, b = adversarial(1500, group, group)
    out = bits_of(dot_group(from_bits(a, BF16), from_bits(b, BF16)), FP32)
    smallest = Fraction(2) ** -126
    worst = Fraction(0)
    overflows = 0
    for row_a, row_b, bits in zip(a.tolist(), b.tolist(), out.tolist(), strict=True):
        pairs = [(value(x), value(y)) for x, y in zip(row_a, row_b, strict=True)]
        exact = sum(x * y for x, y in pairs)
        scale = max((max(abs(x), smallest) * max(abs(y), smallest) for x, y in pairs if x * y), default=Fraction(0))
        bound = group * Fraction(2) ** -29 * scale
        if bits & 0x7FFFFFFF == FP32.inf:
            assert abs(exact) + bound >= Fraction(2) ** 128 - Fraction(2) ** 103
            overflows += 1
            continue
        error = abs(fp32_value(bits) - exact)
        assert error <= bound + ulp32(bits) / 2
        if scale and bits & 0x7F800000:
            worst = max(worst, error / scale)
    assert overflows > 10
    assert worst > 0  # the inputs do exercise truncation


def test_narrow_groups_are_correctly_rounded():
    """Exponents that span at most 15: nothing is cut, so the result is the nearest fp32."""
    rng = np.random.default_rng(1)
    a = rng.integers(0, 1 << 16, (2000, 16)) & 0x807F | (120 + rng.integers(0, 8, (2000, 16))) << 7
    b = rng.integers(0, 1 << 16, (2000, 16)) & 0x807F | (120 + rng.integers(0, 8, (2000, 16))) << 7
    got = dot_group(from_bits(a, BF16), from_bits(b, BF16))
    exact = (from_bits(a, BF16).astype(np.float64) * from_bits(b, BF16).astype(np.float64)).sum(axis=1)
    assert (got == exact.astype(np.float32)).all()


def test_large_sample_against_float64():
    """The bound at scale: float64 sums of exact products are accurate enough where exponents do not span 2**300."""
    a, b = adversarial(60_000, 16, 7)
    x, y = from_bits(a, BF16).astype(np.float64), from_bits(b, BF16).astype(np.float64)
    got = dot_group(from_bits(a, BF16), from_bits(b, BF16)).astype(np.float64)
    products = x * y
    scale = np.where(products != 0, np.maximum(abs(x), 2.0**-126) * np.maximum(abs(y), 2.0**-126), 0).max(axis=1)
    ulp = np.exp2(np.maximum(np.floor(np.log2(np.maximum(abs(got), 2.0**-149))), -126) - 23)
    finite = np.isfinite(got)
    slack = 16 * 2.0**-52 * scale  # float64's own error
    error = abs(got - products.sum(axis=1))
    assert (error[finite] <= (16 * 2.0**-29 * scale + ulp / 2 + slack)[finite]).all()
    assert finite.sum() > 30_000


def test_special_values():
    nan, inf, ninf = FP32.nan, FP32.inf, FP32.inf | FP32.sign_bit
    one, big = 0x3F80, 0x7F7F
    cases = [
        ([0x7FC0, one], [one, one], nan),
        ([0x7F81, 0], [0, 0], nan),
        ([0x7F80, one], [0, one], nan),
        ([0x7F80, one], [0x8000, one], nan),
        ([0x7F80, one], [0x0001, one], inf),
        ([0xFF80, one], [one, 0x7F80], nan),
        ([0xFF80, one], [one, 0xFF80], ninf),
        ([0xFF80, big], [one, big], ninf),
        ([big, big], [big, big], inf),
        ([big, big], [big | 0x8000, big], 0),
        ([big, 0], [big | 0x8000, 0], ninf),
        ([0, 0x8000], [0x8000, 0], 0),
        ([0x8001, 0], [0x0001, 0], 0x80000000),  # underflow keeps its sign
        ([0x8000, 0x8000], [one, one], 0),
        ([0x0001, 0x0001], [one, 0xBF80], 0),
        ([0x0080, 0], [0x3F80, 0], 0x00800000),
        ([0x0001, 0], [0x3F80, 0], 0x00010000),
    ]
    for a, b, expected in cases:
        got = bits_of(dot_group(from_bits(np.array(a), BF16), from_bits(np.array(b), BF16)), FP32)
        assert got == expected, (a, b, hex(int(got)))


def test_nan_inputs_never_leak_payload():
    a, b = adversarial(20_000, 16, 9, finite=False)
    out = bits_of(dot_group(from_bits(a, BF16), from_bits(b, BF16)), FP32)
    nan = (out & 0x7FFFFFFF) > FP32.inf
    assert nan.sum() > 1000 and (out[nan] == FP32.nan).all()
    with np.errstate(all="ignore"):
        x, y = from_bits(a, BF16).astype(np.float64), from_bits(b, BF16).astype(np.float64)
        reference = (x * y).sum(axis=1)
    assert (nan == np.isnan(reference)).all()
    inf = np.isinf(reference)
    assert (from_bits(out, FP32)[inf] == reference[inf]).all()


def test_result_does_not_depend_on_order():
    rng = np.random.default_rng(11)
    a, b = adversarial(3000, 16, 10)
    order = rng.permutation(16)
    first = bits_of(dot_group(from_bits(a, BF16), from_bits(b, BF16)), FP32)
    second = bits_of(dot_group(from_bits(a[:, order], BF16), from_bits(b[:, order], BF16)), FP32)
    assert (first == second).all()


# The fold


def operands(n, rows, depth, cols, seed, finite=True):
    a, b = adversarial(n * rows * cols, depth, seed, finite)
    return (
        from_bits(a[: n * rows].reshape(n, rows, depth), BF16),
        from_bits(np.swapaxes(b[: n * cols].reshape(n, cols, depth), 1, 2), BF16),
    )


@pytest.mark.parametrize("group", [1, 2, 4, 16])
def test_matmul_is_the_fold_of_groups(group):
    a, b = operands(2, 3, 24, 5, group, finite=False)
    got = Numerics(group).matmul(a, b)
    assert got.shape == (2, 3, 5) and got.dtype == np.float32
    for i in range(2):
        for row in range(3):
            for col in range(5):
                acc = np.zeros((), np.float32)
                for k in range(0, 24, group):
                    ga, gb = a[i, row, k : k + group], b[i, k : k + group, col]
                    if len(ga) < group:
                        pad = np.zeros(group - len(ga), dtype=BF16.dtype)
                        ga, gb = np.concatenate([ga, pad]), np.concatenate([gb, pad])
                    acc = from_bits(arith.add_bits(bits_of(acc, FP32), bits_of(dot_group(ga, gb), FP32), FP32), FP32)
                assert bits_of(acc, FP32).item() == bits_of(got[i, row, col], FP32).item()


def test_matmul_continues_from_accumulator():
    numerics = Numerics(4)
    a, b = operands(1, 4, 32, 4, 5)
    whole = numerics.matmul(a, b)
    part = numerics.matmul(a[:, :, 16:], b[:, 16:], numerics.matmul(a[:, :, :16], b[:, :16]))
    assert (bits_of(whole, FP32) == bits_of(part, FP32)).all()


def test_batches_are_independent():
    numerics = Numerics(8)
    a, b = operands(6, 3, 16, 3, 6)
    whole = numerics.matmul(a, b)
    single = np.concatenate([numerics.matmul(a[i : i + 1], b[i : i + 1]) for i in range(6)])
    assert (bits_of(whole, FP32) == bits_of(single, FP32)).all()


def test_int8_wraps_to_int32():
    rng = np.random.default_rng(12)
    a = rng.integers(-128, 128, (2, 5, 37)).astype(np.int8)
    b = rng.integers(-128, 128, (2, 37, 6)).astype(np.int8)
    acc = np.full((2, 5, 6), 2**31 - 5, dtype=np.int32)
    got = Numerics(16).matmul(a, b, acc)
    exact = acc.astype(object) + a.astype(object) @ b.astype(object)
    assert got.dtype == np.int32 and ((got.astype(object) - exact) % 2**32 == 0).all()
    low = np.full((1, 1, 4), -128, dtype=np.int8)
    assert Numerics(4).matmul(low, np.swapaxes(low, 1, 2)).item() == 4 * 128 * 128


def test_compiled_loop_equals_definition():
    compiled_dot = pytest.importorskip("step_lang.numerics.compiled_dot")
    for finite in (True, False):
        a, b = operands(3, 20, 64, 24, 13, finite)
        for group in (3, 4, 16):
            plain = dot.group_dots(a, b, group)
            ga, gb = dot._grouped(a, b, group)
            fast = compiled_dot.group_dots(ga.view(np.uint16), gb.view(np.uint16))
            assert (bits_of(plain, FP32) == bits_of(fast, FP32)).all()


def test_large_products_use_the_compiled_loop(monkeypatch):
    pytest.importorskip("numba")
    a, b = operands(1, 16, 64, 16, 14)
    plain = Numerics(16).group_dots(a, b)
    monkeypatch.setattr(dot, "_COMPILE_ABOVE", 1)
    assert (bits_of(Numerics(16).group_dots(a, b), FP32) == bits_of(plain, FP32)).all()


def test_paper_size_accuracy():
    """Unit-normal operands, K = 256: error far below bf16's resolution."""
    rng = np.random.default_rng(15)
    a = rng.standard_normal((1, 16, 256)).astype(BF16.dtype)
    b = rng.standard_normal((1, 256, 16)).astype(BF16.dtype)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert abs(Numerics(16).matmul(a, b) - exact).max() < 1e-4


@pytest.mark.parametrize("group", [0, 17, 2.0])
def test_group_is_checked(group):
    with pytest.raises(BadParameter, match=f"{group} vs an integer from 1 to 16"):
        Numerics(group)


def test_operands_are_checked():
    x = np.zeros((1, 2, 3), BF16.dtype)
    with pytest.raises(ValueError, match=r"\(1, 2, 3\)"):
        Numerics().matmul(x, x)
    with pytest.raises(TypeError, match="float32"):
        Numerics().matmul(x.astype(np.float32), np.zeros((1, 3, 2), np.float32))
    with pytest.raises(ValueError, match="accumulator"):
        Numerics().matmul(x, np.zeros((1, 3, 2), BF16.dtype), np.zeros((1, 2, 2), BF16.dtype))
