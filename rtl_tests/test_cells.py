"""Element cells in gates against their numpy definitions, bit for bit: unary functions on every input."""

from __future__ import annotations

import numpy as np
import pytest

from rtl_tests.cell_runner import cell_bench
from rtl_tests.harness.build import installed
from step_hw.cells.catalogue import binary_cells, cast_cells, unary_cells
from step_lang import numerics as num
from step_lang.numerics import BF16, DTYPES, FP32, UNARY, arith

pytestmark = pytest.mark.skipif(installed("verilator") is not None, reason=str(installed("verilator")))

FORMATS = {"bf16": BF16, "fp32": FP32}
DEFINITIONS = {
    "add": arith.add_bits,
    "sub": lambda a, b, fmt: arith.add_bits(a, b ^ fmt.sign_bit, fmt),
    "mul": arith.mul_bits,
    "max": arith.max_bits,
    "div": arith.div_bits,
}


def corner_patterns(fmt) -> np.ndarray:
    """Zeros, subnormals, powers of two, largest numbers, infinities, NaNs, all-ones and tie mantissas; both signs."""
    top = 1 << fmt.mant_bits
    fracs = [0, 1, 2, top // 2 - 1, top // 2, top // 2 + 1, top - 2, top - 1]
    fields = [0, 1, 2, 3, 63, 64, 100, 126, 127, 128, 130, 134, 150, 190, 191, 252, 253, 254, 255]
    plus = np.array([field << fmt.mant_bits | frac for field in fields for frac in fracs], dtype=np.int64)
    return np.concatenate([plus, plus | fmt.sign_bit])


def pairs(fmt, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Directed and random operands: all pairs of corners; random patterns; every exponent difference, with
    mantissas of few bits (ties) and many; neighbours (cancellation)."""
    rng = np.random.default_rng(seed)
    corner_a, corner_b = (x.ravel() for x in np.meshgrid(corner_patterns(fmt), corner_patterns(fmt)))
    a, b = rng.integers(0, 1 << fmt.width, (2, count))
    shape = (2, 16, 511)
    sparse = rng.integers(0, 1 << fmt.mant_bits, shape) & -(1 << rng.integers(0, fmt.mant_bits + 1, shape))
    gap = np.arange(-255, 256)
    low = np.where(gap < 0, rng.integers(0, 256, (16, 511)) % (256 + np.minimum(gap, 0)), 0)
    field_a = np.where(gap < 0, low, gap + rng.integers(0, 256, (16, 511)) % (256 - np.maximum(gap, 0)))
    field_b = field_a - gap
    signs = rng.integers(0, 2, (2, 16, 511)) << (fmt.width - 1)
    gap_a, gap_b = (signs[i] | field << fmt.mant_bits | sparse[i] for i, field in enumerate((field_a, field_b)))
    near = np.clip((a & ~fmt.sign_bit) + rng.integers(-40, 40, count), 0, fmt.sign_bit - 1)
    near = near | rng.integers(0, 2, count) << (fmt.width - 1)
    return (np.concatenate([corner_a, a, gap_a.ravel(), a]), np.concatenate([corner_b, b, gap_b.ravel(), near]))


def expect_equal(name: str, got: np.ndarray, expected: np.ndarray, *operands: np.ndarray) -> None:
    got, expected = got.astype(np.int64), expected.astype(np.int64)
    wrong = np.nonzero(got != expected)[0]
    assert not wrong.size, f"{name}: {wrong.size} differ; operands, gates, definition: " + str(
        [tuple(hex(int(o[i])) for o in (*operands, got, expected)) for i in wrong[:5]])


def test_pairs_reach_every_exponent_difference():
    for fmt in FORMATS.values():
        a, b = pairs(fmt, 1000, 0)
        gap = (a >> fmt.mant_bits & 255) - (b >> fmt.mant_bits & 255)
        assert set(gap.tolist()) >= set(range(-255, 256))


@pytest.mark.parametrize("fmt", list(FORMATS))
def test_binary_cells(fmt):
    cells = {name: cell for (name, dtype), cell in binary_cells().items() if dtype == fmt}
    a, b = pairs(FORMATS[fmt], 150_000, 1)
    out = cell_bench(*cells.values()).run(a=a, b=b)
    assert set(cells) >= {"add", "sub", "mul", "max"}
    for name, cell in cells.items():
        expect_equal(name, out[f"{cell.module_name}.out"], DEFINITIONS[name](a, b, FORMATS[fmt]), a, b)


def test_unary_cells_on_every_input():
    cells = unary_cells()
    assert set(cells) == set(UNARY)
    a = np.arange(1 << 16)
    out = cell_bench(*cells.values()).run(a=a)
    for name, cell in cells.items():
        expect_equal(name, out[f"{cell.module_name}.out"], UNARY[name](a), a)


@pytest.mark.parametrize("source", ["bf16", "fp32", "int8", "int32", "u32", "bool"])
def test_cast_cells(source):
    cells = {target: cell for (start, target), cell in cast_cells().items() if start == source}
    dtype = DTYPES[source]
    rng = np.random.default_rng(2)
    if source in ("bf16", "int8", "bool"):
        a = np.arange(1 << {"bf16": 16, "int8": 8, "bool": 1}[source])
    elif source == "fp32":
        halves = (np.arange(-600, 600) / 4).astype(np.float32)
        edges = np.array([2.0**31, 2.0**32, 2.0**33, 2.0**34, 127.5, 128, 255.5], np.float32)
        edges = np.concatenate([edges, -edges, np.nextafter(edges, 0), np.nextafter(-edges, 0)])
        near = rng.uniform(-3e9, 5e9, 50_000).astype(np.float32)
        a = np.concatenate([pairs(FP32, 100_000, 3)[0], *(x.view(np.uint32) for x in (halves, edges, near))])
    else:
        a = rng.integers(0, 1 << 32, 100_000)
        a = np.concatenate([a, a >> rng.integers(0, 32, a.size), np.arange(-300, 300) & 0xFFFFFFFF,
                            (1 << 31) + np.arange(-300, 300), (1 << np.arange(32)) | 1])
    unsigned = np.dtype(f"u{dtype.itemsize}")
    values = a.astype(unsigned).view(dtype)
    out = cell_bench(*cells.values()).run(a=a)
    for target, cell in cells.items():
        expected = num.cast(values, target)
        expected = expected.view(np.dtype(f"u{expected.dtype.itemsize}"))
        expect_equal(f"{source} to {target}", out[f"{cell.module_name}.out"], expected, a)
