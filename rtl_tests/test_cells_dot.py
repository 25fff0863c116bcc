"""Dot product cells and the matmul array in gates against `numerics`, bit for bit, and both simulators against
each other: the array's gated clock must not race with the clock it comes from."""

from __future__ import annotations

import numpy as np
import pytest

from rtl_tests.cell_runner import cell_bench, icarus_bench
from rtl_tests.harness.build import installed
from step_hw.cells.matmul_array import MatmulArray
from step_lang.numerics import BF16, Numerics, from_bits
from step_lang.tests.dot_vectors import adversarial
from step_lang.timing import DOT_STAGES

pytestmark = pytest.mark.skipif(installed("verilator") is not None, reason=str(installed("verilator")))


def operands(count: int, rows: int, group: int, cols: int, dtype: str, seed: int):
    """`a[count, rows, group]` and `b[count, group, cols]`; bf16 as uint16 patterns."""
    if dtype == "int8":
        rng = np.random.default_rng(seed)
        a = rng.choice([-128, -1, 0, 127], (count, rows, group)) * (rng.random((count, 1, 1)) < 0.2)
        a = np.where(a == 0, rng.integers(-128, 128, a.shape), a).astype(np.int8)
        b = rng.integers(-128, 128, (count, group, cols)).astype(np.int8)
        b[::7] = -128
        return a, b
    a, b = adversarial(count * max(rows, cols), group, seed, finite=False)
    a = a.reshape(count, -1, group)[:, :rows].astype(np.uint16)
    b = np.swapaxes(b.reshape(count, -1, group)[:, :cols], 1, 2).astype(np.uint16)
    return a, np.ascontiguousarray(b)


def expected(a: np.ndarray, b: np.ndarray, dtype: str) -> np.ndarray:
    if dtype == "bf16":
        a, b = from_bits(a, BF16), from_bits(b, BF16)
    dots = Numerics(a.shape[2]).group_dots(a, b)
    assert dots.shape[1] == 1
    return np.ascontiguousarray(dots[:, 0]).view(np.uint32).reshape(len(a), -1)


def words(values: np.ndarray) -> np.ndarray:
    raw = np.ascontiguousarray(values).reshape(len(values), -1).view(np.uint8)
    padded = np.zeros((len(raw), -(-raw.shape[1] // 4) * 4), np.uint8)
    padded[:, : raw.shape[1]] = raw
    return padded.view("<u4")


def run(bench, array: MatmulArray, a, b, enabled) -> tuple[np.ndarray, np.ndarray]:
    """(results the array shows, results it should show) in every cycle that has three enabled ones before it."""
    out = bench.run(en=enabled.astype(np.uint32), a=words(a), b=words(b))[f"{array.module_name}.out"]
    out = out.reshape(len(a), -1)
    right = expected(a, b, array.dtype)
    # With the bench's register before the inputs, cycle t works with vector t - 1.
    before = np.concatenate([[0, 0], np.cumsum(enabled)])[: len(a)]
    taken = np.nonzero(enabled)[0]
    cycles = np.nonzero(before >= DOT_STAGES)[0]
    return out[cycles], right[taken[before[cycles] - DOT_STAGES]]


@pytest.mark.parametrize("dtype,rows,group,cols", [
    ("bf16", 2, 2, 2), ("bf16", 4, 4, 4), ("bf16", 2, 16, 2), ("bf16", 3, 5, 1), ("bf16", 2, 1, 2), ("int8", 4, 4, 4),
    ("int8", 2, 16, 3),
])
def test_array_equals_definition(dtype, rows, group, cols):
    array = MatmulArray(rows, group, dtype, cols)
    bench = cell_bench(array, registered=True)
    rng = np.random.default_rng(5)
    count = 40_000
    a, b = operands(count, rows, group, cols, dtype, group)
    enabled = rng.random(count) < np.repeat(rng.choice([0.1, 0.5, 1.0], count // 100), 100)
    got, right = run(bench, array, a, b, enabled)
    wrong = np.nonzero((got != right).any(axis=1))[0]
    assert not wrong.size, [(hex(int(x)), hex(int(y))) for i in wrong[:3] for x, y in zip(got[i], right[i]) if x != y]
    assert len(got) > count // 2


@pytest.mark.skipif(installed("icarus") is not None, reason=str(installed("icarus")))
@pytest.mark.parametrize("dtype", ["bf16", "int8"])
def test_simulators_agree_on_the_gated_clock(tmp_path, dtype):
    array = MatmulArray(2, 2, dtype)
    rng = np.random.default_rng(6)
    count = 1500
    a, b = operands(count, 2, 2, 2, dtype, 7)
    enabled = rng.random(count) < 0.4
    vectors = {"en": enabled.astype(np.uint32), "a": words(a), "b": words(b)}
    shown = [bench.run(**vectors)[f"{array.module_name}.out"]
             for bench in (cell_bench(array, registered=True), icarus_bench(tmp_path, array, registered=True))]
    start = int(np.nonzero(np.cumsum(enabled) > DOT_STAGES)[0][0]) + 2
    assert (shown[0][start:] == shown[1][start:]).all()
    got, right = run(cell_bench(array, registered=True), array, a, b, enabled)
    assert (got == right).all()


def test_modules_are_written_once():
    modules = MatmulArray(4, 4).dependencies()
    assert sorted(modules) == ["clock_gate", "dot_bf16_g4", "dot_operand_g4", "matmul_row_bf16_4_g4"]
    assert MatmulArray(4, 4).dependencies() == modules
    assert modules["matmul_row_bf16_4_g4"].count("dot_bf16_g4 dot") == 4
