"""Bench of scan: on both simulators against the interpreter and the model, timing as stated, errors."""

from random import Random

import pytest

from rtl_tests.compute_bench import MASKED_BINS, FoldConfig, check_timing, fold_config, masked_bins, unit_of
from rtl_tests.fold_bench import WRONG, bench_cases, model_cases, steady
from rtl_tests.harness import STREAM_BINS, Case, Coverage, beats, bench_unit, stream_bins
from rtl_tests.model_bench import assert_model_equals_rtl
from step_lang import fn
from step_lang.types import Tile, bf16, fp32, int32

pytestmark = pytest.mark.long

SQUARE, BF16, FP32 = Tile(2, 2, int32), Tile(2, 2, bf16), Tile(2, 2, fp32)

SCALAR = FoldConfig("add_scalar", fn.add(), (Tile(1, 1, int32),), Tile(1, 1, int32))
CONFIGS = [
    SCALAR,
    FoldConfig("add_by_rows", fn.add(), (SQUARE,), SQUARE, rows_per_cycle=1),
    FoldConfig("add_masked", fn.add(), (SQUARE,), SQUARE, rows_per_cycle=1, dynamic=(0,)),
    FoldConfig("max_masked", fn.max(), (BF16,), BF16, init=0xFF80, dynamic=(0,), shapes=((1, ()), (1, (2, 2)))),
    FoldConfig("last", fn.last(), (SQUARE,), SQUARE, entries=1, dynamic=(0,), shapes=((1, ()),)),
    FoldConfig("add_bf16", fn.add(), (BF16,), BF16),
    FoldConfig("max_register", fn.max(), (SQUARE,), SQUARE, entries=1, init=1 << 31, shapes=((1, ()), (2, ()))),
    FoldConfig("row_max_bf16", fn.row_max(), (BF16,), Tile(2, 1, bf16), rows_per_cycle=1, init=0xFF80),
    FoldConfig("matmul_bf16", fn.matmul(), (BF16, BF16), FP32, k_per_cycle=1),
]
IDS = [config.name for config in CONFIGS]
MODELLED = [config for config in CONFIGS if config.name in ("add_scalar", "add_masked", "row_max_bf16",
                                                            "matmul_bf16")]


def test_worked_example(simulator):
    """SPEC section 3, cycle by cycle."""
    case = Case("spec", {"in0": beats("1 2 S1 3 4 S1 D")}, {"out0": beats("1 3 S1 3 7 S1 D")}, fold_config(1, ()))
    (result,) = bench_unit(simulator, unit_of("scan", SCALAR), [case])
    assert result.stamps == {"in0": [0, 1, 2, 3, 4], "out0": [1, 2, 3, 4, 5]}


@pytest.mark.parametrize("config", CONFIGS, ids=IDS)
def test_values_and_timing(simulator, config):
    """Random and corner streams of every shape, free and under back-pressure; then latency and interval as stated."""
    rng = Random(config.name)
    cases = bench_cases("scan", config, rng)
    runs = [steady(config, rng, sizes) for sizes in ([()] if config.entries == 1 else [(), (4,), (2, 2)])]
    unit = unit_of("scan", config)
    results = bench_unit(simulator, unit, [*cases, *(case for case, _ in runs)])
    bins = [*STREAM_BINS, "held by the output", *(MASKED_BINS if config.dynamic else ())]
    coverage = Coverage(f"scan {config.name}", bins)
    for result in results:
        coverage.hit_if_declared(stream_bins(result.beats["in0"]))
        coverage.hit_if_declared(masked_bins(result.beats["in0"], config))
        if result.blocked["out0"]:
            coverage.hit("held by the output")
    coverage.check()
    for (_, elements), result in zip(runs, results[len(cases):], strict=True):
        check_timing(result, unit.timing, elements)


@pytest.mark.parametrize("config", MODELLED, ids=[config.name for config in MODELLED])
def test_model_equals_rtl(simulator, config):
    """Every beat, and every error, in the same cycle in RTL and model."""
    cases = model_cases("scan", config, Random(config.name))
    assert_model_equals_rtl(simulator, unit_of("scan", config), cases, params=config.params)


def test_errors(simulator):
    """Streams that the configuration does not allow raise the sticky code."""
    cases = [Case(name, {"in0": shape}, {}, cfg, error=error) for name, (shape, cfg, error) in WRONG.items()]
    bench_unit(simulator, unit_of("scan", SCALAR), cases)
