"""Bench of the accumulator: on both simulators against the interpreter and the model, timing as stated, errors."""

from itertools import pairwise
from math import prod
from random import Random

import pytest

from rtl_tests.compute_bench import MASKED_BINS, FoldConfig, fold_config, masked_bins, unit_of
from rtl_tests.fold_bench import WRONG, WRONG_OPEN, bench_cases, model_cases, steady
from rtl_tests.harness import (
    DONE,
    STREAM_BINS,
    Beat,
    Case,
    CaseResult,
    Coverage,
    beats,
    bench_unit,
    stream_bins,
    withhold,
)
from rtl_tests.model_bench import assert_model_equals_rtl
from step_lang import fn
from step_lang.errors import BadParameter, UnknownFunction
from step_lang.types import Tile, bf16, fp32, int8, int32

SQUARE, COLUMN = Tile(2, 2, int32), Tile(2, 1, int32)
BYTES, BF16, FP32 = Tile(2, 2, int8), Tile(2, 2, bf16), Tile(2, 2, fp32)
BF16_4 = Tile(4, 4, bf16)

CLOSED = FoldConfig.shapes
OPEN = ((1, (0,)), (2, (0,)), (1, (0, 2)), (2, (0, 1)))
SCALAR = FoldConfig("add_scalar", fn.add(), (Tile(1, 1, int32),), Tile(1, 1, int32), shapes=CLOSED + OPEN)
CONFIGS = [
    SCALAR,
    FoldConfig("add_register", fn.add(), (SQUARE,), SQUARE, rows_per_cycle=1, entries=1, shapes=((1, ()), (2, ()))),
    FoldConfig("add_by_rows", fn.add(), (SQUARE,), SQUARE, rows_per_cycle=1, shapes=CLOSED + OPEN),
    FoldConfig("last", fn.last(), (SQUARE,), SQUARE, shapes=CLOSED + OPEN),
    FoldConfig("add_masked", fn.add(), (SQUARE,), SQUARE, rows_per_cycle=1, dynamic=(0,), shapes=CLOSED + OPEN),
    FoldConfig("max_masked", fn.max(), (BF16,), BF16, init=0xFF80, dynamic=(0,)),
    FoldConfig("last_masked", fn.last(), (SQUARE,), SQUARE, dynamic=(0,), shapes=CLOSED + OPEN),
    FoldConfig("row_max_masked", fn.row_max(), (BF16_4,), Tile(4, 1, bf16), tile=4, rows_per_cycle=2, init=0xFF80,
               dynamic=(0,), shapes=((1, (0,)), (1, ()))),
    FoldConfig("matmul_masked", fn.matmul(), (BF16, BF16), FP32, k_per_cycle=1, dynamic=(0,),
               shapes=((1, (0,)), (2, (0, 2)), (1, (2,)), (1, ()))),
    FoldConfig("add_fp32", fn.add(), (FP32,), FP32, rows_per_cycle=1),
    FoldConfig("max_bf16", fn.max(), (BF16,), BF16, init=0xFF80),
    FoldConfig("row_max_int32", fn.row_max(), (SQUARE,), COLUMN, rows_per_cycle=1, init=1 << 31),
    FoldConfig("row_max_bf16", fn.row_max(), (BF16,), Tile(2, 1, bf16), init=0xFF80),
    FoldConfig("row_sum_int8", fn.row_sum(), (BYTES,), COLUMN),
    FoldConfig("row_sum_bf16", fn.row_sum(), (BF16_4,), Tile(4, 1, fp32), tile=4, k_per_cycle=2),
    FoldConfig("matmul_int8", fn.matmul(), (BYTES, BYTES), SQUARE, k_per_cycle=1, shapes=CLOSED + OPEN),
    FoldConfig("matmul_bf16", fn.matmul(), (BF16, BF16), FP32),
    FoldConfig("matmul_bf16_by_groups", fn.matmul(transpose_b=True), (BF16_4, BF16_4), Tile(4, 4, fp32), tile=4,
               k_per_cycle=2, shapes=((1, ()), (1, (3,)), (2, (2, 2)))),
]
IDS = [config.name for config in CONFIGS]
MODELLED = [config for config in CONFIGS if config.name in (
    "add_scalar", "add_by_rows", "row_max_int32", "matmul_int8", "matmul_bf16", "add_masked", "last_masked",
    "matmul_masked")]
BINS = (*STREAM_BINS, "empty group leaves init", "next fold chases the drain", "fold waits for the drain",
        "done waits for the drain", "state of one element", "state of two dimensions")
OPEN_BINS = ("open state", "smaller tensor than the last group's", "larger tensor than the last group's",
             "smaller tensor waits for the drain", "open fold of several tensors")
HOLLOW_BINS = ("bare stop leaves as one", "bare stop behind a bare stop", "bare stop waits for the drain")


def _declared(config: FoldConfig) -> list[str]:
    """Bins that ``config`` can reach."""
    found = {*BINS, *HOLLOW_BINS}
    if not any(len(sizes) == 2 for _, sizes in config.shapes):
        found -= {"state of two dimensions"}
    if any(0 in sizes for _, sizes in config.shapes):
        found |= set(OPEN_BINS)
    if config.dynamic:
        found |= set(MASKED_BINS)
    return sorted(found)


def _cover(coverage: Coverage, case: Case, result: CaseResult, config: FoldConfig, latency: int) -> None:
    """Bins from what one run was and did."""
    port = result.beats["in0"]
    coverage.hit_if_declared(stream_bins(port))
    cfg = case.cfg
    inner = cfg["inner"]
    top = cfg["rank"] + inner
    found = {"state of one element"} if cfg["n1"] == cfg["n0"] == 1 else set()
    found |= {"state of two dimensions"} if inner == 2 else set()
    found |= {"open state"} if 0 in (cfg["n1"], cfg["n0"]) else set()
    found.update(masked_bins(port, config))
    outs = [(stamp, beat) for stamp, beat in zip(result.stamps["out0"], result.beats["out0"], strict=True)
            if not beat.done]
    last_outs = [i for i, (_, beat) in enumerate(outs) if beat.stop >= inner]
    sizes = [b - a for a, b in pairwise([-1, *last_outs])]
    closes = [i for i, beat in enumerate(port) if not beat.done and beat.stop >= top]
    for group, i in enumerate(closes):
        hollow = outs[last_outs[group]][1].empty
        first = i == 0 or i - 1 in closes or port[i - 1].done
        if port[i].empty and first:
            found.add("bare stop leaves as one" if hollow else "empty group leaves init")
            if hollow and i - 1 in closes and port[i - 1].empty:
                found.add("bare stop behind a bare stop")
        tensors = sum(beat.stop >= inner for beat in port[closes[group - 1] + 1 if group else 0:i + 1])
        if "open state" in found and tensors > 1:
            found.add("open fold of several tensors")
        if group and "open state" in found and not hollow and port[i - 1].done == 0:
            if sizes[group] != sizes[group - 1]:
                found.add(f"{'smaller' if sizes[group] < sizes[group - 1] else 'larger'} tensor than the last group's")
        if group + 1 < len(closes):
            ended, then = outs[last_outs[group]][0], closes[group + 1]
            taken = result.stamps["in0"][then]
            # Behind it lie the stages before the state, so it waits there, or it holds what is behind it.
            if taken + latency - 1 < ended or (taken <= ended and result.blocked["in0"]):
                if port[then].empty and port[then - 1].stop >= top and case.cfg.get("hollow"):
                    found.add("bare stop waits for the drain")
                elif sizes[group + 1] < sizes[group] and "open state" in found:
                    found.add("smaller tensor waits for the drain")
        if i + 1 < len(port) and result.stamps["in0"][i + 1] <= outs[last_outs[group]][0]:
            found.add("done waits for the drain" if port[i + 1].done else "next fold chases the drain")
    if result.blocked["in0"]:
        found.add("fold waits for the drain")
    coverage.hit_if_declared(sorted(found))


def test_worked_example(simulator):
    """SPEC section 3, cycle by cycle."""
    case = Case("spec", {"in0": beats("1 2 S1 S1 3 S2 D")}, {"out0": beats("3 0 3 S1 D")}, fold_config(1, ()))
    (result,) = bench_unit(simulator, unit_of("accum", SCALAR), [case])
    assert result.stamps == {"in0": [0, 1, 2, 3, 4], "out0": [2, 3, 4, 5]}


@pytest.mark.parametrize("config", CONFIGS, ids=IDS)
def test_values_and_timing(simulator, config):
    """Random and corner streams of every shape, free and under back-pressure; then latency and interval as stated."""
    rng = Random(config.name)
    cases = bench_cases("accum", config, rng)
    sizes = [()] if config.entries == 1 else [(), (4,), (2, 2)]
    runs = [(each, *steady(config, rng, each, is_open)) for each in sizes for is_open in ((False, True) if each else
                                                                                         (False,))]
    unit = unit_of("accum", config)
    results = bench_unit(simulator, unit, [*cases, *(case for _, case, _ in runs)])
    coverage = Coverage(f"accum {config.name}", _declared(config))
    for case, result in zip(cases, results):
        _cover(coverage, case, result, config, unit.timing.latency)
    coverage.check()
    for (each, _, elements), result in zip(runs, results[len(cases):], strict=True):
        _check_steady(result, unit.timing, elements, prod(each))


def _check_steady(result: CaseResult, timing, elements: int, entries: int) -> None:
    """One element an interval, without a pause between groups; the first entry ``latency`` after the closing element,
    the others one a cycle."""
    taken, given = result.stamps["in0"][:elements], result.stamps["out0"][:elements]
    assert [b - a for a, b in pairwise(taken)] == [timing.interval] * (elements - 1)
    for first in range(0, elements, entries):
        closed = taken[first + entries - 1]
        assert given[first:first + entries] == [closed + timing.latency + i for i in range(entries)]


@pytest.mark.parametrize("config", MODELLED, ids=[config.name for config in MODELLED])
def test_model_equals_rtl(simulator, config):
    """Every beat, and every error, in the same cycle in RTL and model."""
    cases = model_cases("accum", config, Random(config.name))
    assert_model_equals_rtl(simulator, unit_of("accum", config), cases, params=config.params)


def test_errors(simulator):
    """Streams that the configuration does not allow raise the sticky code, and nothing of them leaves."""
    cases = [Case(name, {"in0": shape}, {"out0": []} if name in WRONG else {}, cfg, error=error)
             for name, (shape, cfg, error) in (WRONG | WRONG_OPEN).items()]
    bench_unit(simulator, unit_of("accum", SCALAR), cases)


def test_drain_is_chased(simulator):
    """With the output closed the next fold goes on until it would overwrite what has not left, and not further."""
    groups = [Beat(i, 1, 2 if i % 3 == 2 else 0) for i in range(9)]
    left = [beat._replace(stop=beat.stop // 2) for beat in groups]
    case = Case("closed", {"in0": [*groups, DONE]}, {"out0": [*left, DONE]}, fold_config(1, (3,)), sink=withhold(20))
    (result,) = bench_unit(simulator, unit_of("accum", SCALAR), [case])
    # The first group is folded; entry 0 of the second waits for the drain's first beat, then both move together.
    assert result.stamps["in0"][:4] == [0, 1, 2, 20]
    assert result.stamps["out0"] == [20 + i for i in range(10)]


def test_parameters_are_checked():
    """Messages name the parameter and both values."""
    with pytest.raises(BadParameter, match="0 entries vs at least 1"):
        unit_of("accum", FoldConfig("x", fn.add(), (SQUARE,), SQUARE, entries=0))
    with pytest.raises(BadParameter, match="0x10000 vs 16 bits of bf16"):
        unit_of("accum", FoldConfig("x", fn.max(), (BF16,), BF16, init=0x10000))
    with pytest.raises(UnknownFunction, match="sub"):
        unit_of("accum", FoldConfig("x", fn.sub(), (SQUARE,), SQUARE))
    with pytest.raises(UnknownFunction, match="concat_rows"):
        unit_of("accum", FoldConfig("x", fn.concat_rows(), (SQUARE,), SQUARE))
