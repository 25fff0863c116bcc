"""Bench of the map unit: every function's hardware, on both simulators, against the interpreter and the model."""

from random import Random

import pytest

from rtl_tests.compute_bench import (
    MASKED_BINS,
    MapConfig,
    aligned_streams,
    check_timing,
    dressed,
    interpreted,
    masked_bins,
    unit_of,
)
from rtl_tests.harness import DONE, STREAM_BINS, Beat, Case, Coverage, bare, bench_unit, bernoulli, bursts, stream_bins
from rtl_tests.harness.streams import corner_streams
from rtl_tests.model_bench import ModelCase, assert_model_equals_rtl, pressed
from step_hw.unit import ErrorCode
from step_lang import fn
from step_lang.errors import BadParameter, TypeMismatch, UnknownFunction
from step_lang.types import Tile, bf16, bool_, fp32, int8, int32, u32

SQUARE, COLUMN, ROW = Tile(2, 2, int32), Tile(2, 1, int32), Tile(1, 2, int32)
BYTES = Tile(2, 2, int8)
BF16, FP32, BF16_4 = Tile(2, 2, bf16), Tile(2, 2, fp32), Tile(4, 4, bf16)

CONFIGS = [
    MapConfig("add", fn.add(), (SQUARE, SQUARE), SQUARE),
    MapConfig("add_by_rows", fn.add(), (SQUARE, SQUARE), SQUARE, rows_per_cycle=1),
    MapConfig("sub_column", fn.sub(), (SQUARE, COLUMN), SQUARE, rows_per_cycle=1),
    MapConfig("sub_row", fn.sub(), (ROW, SQUARE), SQUARE, rows_per_cycle=1),
    MapConfig("mul_u32_scalar", fn.mul(), (Tile(1, 1, u32), Tile(1, 1, u32)), Tile(1, 1, u32)),
    MapConfig("max_int8", fn.max(), (Tile(4, 4, int8), Tile(1, 4, int8)), Tile(4, 4, int8), tile=4, rows_per_cycle=2),
    MapConfig("max_u32", fn.max(), (Tile(2, 2, u32), Tile(2, 2, u32)), Tile(2, 2, u32)),
    MapConfig("scale_int32", fn.scale(constant=-3), (SQUARE,), SQUARE, cfg={"constant": (1 << 32) - 3}),
    MapConfig("row_max_int32", fn.row_max(), (SQUARE,), COLUMN, rows_per_cycle=1),
    MapConfig("row_sum_int8", fn.row_sum(), (Tile(4, 4, int8),), Tile(4, 1, int32), tile=4, rows_per_cycle=2),
    MapConfig("matmul_int8", fn.matmul(), (BYTES, BYTES), SQUARE),
    MapConfig("matmul_int8_by_groups", fn.matmul(transpose_b=True), (Tile(4, 4, int8), Tile(4, 4, int8)),
              Tile(4, 4, int32), tile=4, k_per_cycle=2),
    MapConfig("add_bf16", fn.add(), (BF16, BF16), BF16, rows_per_cycle=1),
    MapConfig("sub_fp32", fn.sub(), (FP32, FP32), FP32, rows_per_cycle=1),
    MapConfig("mul_bf16", fn.mul(), (BF16, Tile(2, 1, bf16)), BF16, rows_per_cycle=1),
    MapConfig("div_bf16", fn.div(), (BF16, Tile(2, 1, bf16)), BF16, rows_per_cycle=1),
    MapConfig("max_bf16", fn.max(), (BF16, BF16), BF16, rows_per_cycle=1),
    MapConfig("scale_bf16", fn.scale(constant=0.125), (BF16,), BF16, cfg={"constant": 0x3E00}),
    *(MapConfig(name, fn.get(name), (BF16,), BF16, rows_per_cycle=1)
      for name in ("exp", "silu", "gelu", "sigmoid", "rsqrt", "reciprocal")),
    MapConfig("cast_fp32_bf16", fn.cast(dtype="bf16"), (FP32,), BF16, rows_per_cycle=1),
    MapConfig("cast_bf16_fp32", fn.cast(dtype="fp32"), (BF16,), FP32),
    MapConfig("cast_fp32_int8", fn.cast(dtype="int8"), (FP32,), BYTES, rows_per_cycle=1),
    MapConfig("cast_int32_bf16", fn.cast(dtype="bf16"), (SQUARE,), BF16, rows_per_cycle=1),
    MapConfig("cast_bool_u32", fn.cast(dtype="u32"), (Tile(1, 1, bool_),), Tile(1, 1, u32)),
    MapConfig("row_max_bf16", fn.row_max(), (BF16_4,), Tile(4, 1, bf16), tile=4, rows_per_cycle=2),
    MapConfig("row_sum_bf16", fn.row_sum(), (BF16_4,), Tile(4, 1, fp32), tile=4),
    MapConfig("row_sum_bf16_by_groups", fn.row_sum(), (BF16_4,), Tile(4, 1, fp32), tile=4, k_per_cycle=2),
    MapConfig("matmul_bf16", fn.matmul(), (BF16, BF16), FP32),
    MapConfig("matmul_bf16_by_groups", fn.matmul(), (BF16_4, Tile(4, 1, bf16)), Tile(4, 1, fp32), tile=4,
              k_per_cycle=2),
    MapConfig("last", fn.last(), (SQUARE,), SQUARE),
    MapConfig("add_masked", fn.add(), (SQUARE, ROW), SQUARE, dynamic=(0,)),
    MapConfig("exp_masked", fn.exp(), (BF16,), BF16, rows_per_cycle=1, dynamic=(0,)),
    MapConfig("row_max_masked", fn.row_max(), (BF16_4,), Tile(4, 1, bf16), tile=4, rows_per_cycle=2, dynamic=(0,)),
    MapConfig("matmul_masked", fn.matmul(), (BF16_4, BF16_4), Tile(4, 4, fp32), tile=4, k_per_cycle=2, dynamic=(0,)),
    MapConfig("matmul_bf16_outer", fn.matmul(), (Tile(2, 1, bf16), Tile(1, 2, bf16)), FP32),
]
IDS = [config.name for config in CONFIGS]
MODELLED = [config for config in CONFIGS if config.name in ("add", "sub_row", "row_max_int32", "matmul_int8_by_groups",
                                                            "row_max_masked")]


def _streams(config: MapConfig, rng: Random) -> dict[str, tuple[list[list[Beat]], int]]:
    """Name to beats of each port and their rank."""
    found = {f"random{rank}": (aligned_streams(rng, config.in_types, rank, dynamic=config.dynamic), rank)
             for rank in (0, 1, 3)}
    for name, shape in corner_streams(2, lambda: Beat(0, 1)).items():
        found[name] = (dressed(rng, shape, config.in_types), 2)
    return found


@pytest.mark.parametrize("config", CONFIGS, ids=IDS)
def test_values_and_timing(simulator, config):
    """Random and corner streams, free and under back-pressure; then latency and interval as stated."""
    rng = Random(config.name)
    coverage = Coverage(f"map {config.name}", [*STREAM_BINS, *(MASKED_BINS if config.dynamic else ())])
    cases = []
    for i, (name, (ports, rank)) in enumerate(_streams(config, rng).items()):
        coverage.hit_if_declared(stream_bins(ports[0]))
        coverage.hit_if_declared(masked_bins(ports[0], config))
        expected = interpreted("map", config, ports, rank)
        cases.append(Case(name, inputs={f"in{k}": port for k, port in enumerate(ports)}, expected={"out0": expected},
                          cfg=config.cfg, drive=bernoulli(0.6) if i % 2 else None,
                          sink=bursts(3, 4) if i % 3 else None))
    shape = [Beat(0, 1) for _ in range(6)] + [Beat(0, 1, 1), DONE]
    cases.append(Case("timing", inputs={f"in{k}": port for k, port in enumerate(dressed(rng, shape, config.in_types))},
                      cfg=config.cfg))
    unit = unit_of("map", config)
    results = bench_unit(simulator, unit, cases)
    check_timing(results[-1], unit.timing, len(shape) - 1)
    coverage.check()


@pytest.mark.parametrize("config", MODELLED, ids=[config.name for config in MODELLED])
def test_model_equals_rtl(simulator, config):
    """Every beat in the same cycle in RTL and model."""
    rng = Random(config.name)
    cases = []
    for name, (ports, rank) in _streams(config, rng).items():
        expected = interpreted("map", config, ports, rank)
        inputs = {f"in{k}": port for k, port in enumerate(ports)}
        cases.append(ModelCase(name, inputs, config.cfg, expected={"out0": expected}))
        cases.append(pressed(ModelCase(f"{name} pressed", inputs, config.cfg, expected={"out0": expected}), rng))
    short = dressed(rng, [Beat(0, 1), Beat(0, 1, 1), DONE], config.in_types)
    if len(short) > 1:
        wrong = [*short[:-1], [short[-1][0]._replace(stop=1), *short[-1][1:]]]
        cases.append(ModelCase("misaligned", {f"in{k}": port for k, port in enumerate(wrong)}, config.cfg,
                               error=ErrorCode.MISALIGNED))
    assert_model_equals_rtl(simulator, unit_of("map", config), cases, params=config.params)


@pytest.mark.parametrize("rows", [0, 1, 3, 4])
def test_rows_that_are_not_valid_are_zero(simulator, rows):
    """Though zero times infinity is not a number."""
    config = CONFIGS[IDS.index("matmul_masked")]
    infinite = sum(0x7F80 << 16 * i for i in range(16))
    ports = [[Beat(infinite & ((1 << 64 * rows) - 1), rows), DONE], [Beat(infinite, 4), DONE]]
    case = Case("infinite", {"in0": ports[0], "in1": ports[1]}, {"out0": interpreted("map", config, ports, 0)})
    (result,) = bench_unit(simulator, unit_of("map", config), [case])
    assert result.beats["out0"][0] == Beat(sum(0x7F800000 << 32 * i for i in range(4 * rows)), rows)


@pytest.mark.parametrize("other", [[Beat(5, 1, 2), DONE], [bare(1), DONE], [DONE]], ids=["stop", "empty", "done"])
def test_misaligned(simulator, other):
    """Inputs that disagree raise the sticky code, and nothing of them leaves."""
    config = CONFIGS[IDS.index("mul_u32_scalar")]
    case = Case("misaligned", inputs={"in0": [Beat(2, 1, 1), DONE], "in1": other}, expected={"out0": []},
                error=ErrorCode.MISALIGNED)
    bench_unit(simulator, unit_of("map", config), [case])


def test_hardware_says_what_it_lacks():
    """A function without hardware is named, and so is a parameter that does not divide."""
    with pytest.raises(UnknownFunction, match="concat_rows"):
        unit_of("map", MapConfig("x", fn.concat_rows(), (SQUARE, SQUARE), Tile(4, 2, int32)))
    with pytest.raises(BadParameter, match="rows_per_cycle: 3 vs"):
        unit_of("map", MapConfig("x", fn.add(), (Tile(4, 4, int32),) * 2, Tile(4, 4, int32), tile=4, rows_per_cycle=3))
    with pytest.raises(BadParameter, match="k_per_cycle: 3 vs"):
        unit_of("map", MapConfig("x", fn.matmul(), (Tile(4, 4, int8),) * 2, Tile(4, 4, int32), tile=4, k_per_cycle=3))
    with pytest.raises(TypeMismatch, match="broadcasts"):
        unit_of("map", MapConfig("x", fn.add(), (SQUARE, Tile(4, 2, int32)), SQUARE))
