"""Bench of ``step_hw/units/unpack_rows.py`` and its model."""

from functools import cache, partial
from itertools import repeat
from random import Random

import pytest

from rtl_tests.harness import Beat, Coverage, bare, beats, corner_streams
from rtl_tests.harness.beats import DONE
from rtl_tests.row_bench import (
    COLUMNS,
    ROW,
    ROW_TYPE,
    TILE,
    TILE_TYPE,
    T,
    assert_rates,
    beat,
    golden,
    pressed_bench,
    row_tiles,
    tiles,
)
from rtl_tests.shape_bench import Trial, cached_results, compare_with_model, random_runs, result_tests
from step_hw.beat import BeatLayout
from step_hw.unit import ErrorCode
from step_hw.units.unpack_rows import UnpackRows
from step_lang import ops
from step_lang.errors import StreamProtocolError
from step_lang.timing import unit_timing

UNIT = UnpackRows(TILE, ROW, COLUMNS)
BINS = [
    "empty stream", "single element stream", "bare stop", "starts with bare stop", "bare stop after bare stop",
    "back to back streams", "in0 blocked", "out0 blocked", "out0 starved", "rank 2", "rank 3", "rank 4", "1 column",
    "all columns", "tile of several row tiles", "block of 1 row", "block of T rows", "block of no row vanishes",
    "vector ends with a block of no row", "vector ends with several blocks of no row", "vector of no row",
    "row held until done", "empty vector",
]


def _expected(stream, rank, n) -> list[Beat]:
    return golden(ops.unpack_rows, [stream], [TILE_TYPE], [rank], n, ROW_TYPE)


def _trial(name, stream, rank, n, directed=False) -> Trial:
    return Trial(name, {"in0": stream}, {"out0": _expected(stream, rank, n)}, {"n": n}, directed=directed)


def _wrong(name, stream, error=ErrorCode.SHAPE, right=4) -> Trial:
    """A stream of rank 3, blocks of two tiles, whose first ``right`` beats are right."""
    rng = Random(name)
    begun = [*stream[:right], *([] if stream[right - 1].stop == 3 else row_tiles(rng, 1, 2, 3)), DONE]
    return Trial(name, {"in0": stream}, {"out0": _expected(begun, 3, 2)}, {"n": 2}, error, directed=True)


@cache
def wrong_trials() -> tuple[Trial, ...]:
    rng = Random("wrong")
    good = row_tiles(rng, 2, 2, 2) + row_tiles(rng, 1, 2, 2)
    end = row_tiles(rng, 3, 2, 3)
    return (
        _wrong("tiles of different rows", [*good, beat(rng, 3), beat(rng, 2, 3), DONE], ErrorCode.MISALIGNED),
        _wrong("tile of no row beside one of some", [*good, beat(rng, 0), beat(rng, 2, 3), DONE],
               ErrorCode.MISALIGNED),
        _wrong("block of one tile", [*good, beat(rng, 2, 3), DONE]),
        _wrong("block of three tiles", [*good, beat(rng, 2), beat(rng, 2), beat(rng, 2, 3), DONE]),
        _wrong("block of no row of three tiles", [*good, beat(rng, 0), beat(rng, 0), beat(rng, 0, 3), DONE]),
        _wrong("block without tiles", [*good, bare(1), *end, DONE]),
        _wrong("tile without tiles", [*good, *end, bare(2), *end, DONE], right=6),
        _wrong("vector ends with a block without tiles", [*good, bare(3), DONE]),
        _wrong("block without tiles behind one of no row", [*good, *end, *row_tiles(rng, 0, 2, 2), bare(3), DONE],
               right=6),
        _wrong("done inside a block", [*good, beat(rng, 1), DONE], ErrorCode.PROTOCOL),
        _wrong("bare stop inside a block", [*good, beat(rng, 1), bare(3), DONE], ErrorCode.PROTOCOL),
    )


@cache
def trials() -> tuple[Trial, ...]:
    rng = Random("unpack_rows")
    heights = iter([2, 0, 5, 1, 0, 0, 3, 0])
    made = [_trial("timing", tiles(rng, beats("1 2 3 4 S1 5 6 S1 7 8 S1 D"), heights.__next__, 3), 3, 3,
                   directed=True)]
    for n, most in ((1, 1), (1, T), (2, 1), (3, 3), (COLUMNS, 1), (COLUMNS, T)):
        # Single row tiles, in one vector and in vectors of their own, then tiles of several row tiles.
        outer = [Beat() for _ in range(100 // n)] + [Beat(stop=1) for _ in range(100 // n)] + [DONE]
        made.append(_trial(f"rate {n} {most}", tiles(rng, outer, repeat(most).__next__, n), 3, n))
    made.append(_trial("rate of tall tiles", tiles(rng, beats("1 2 3 4 5 6 7 8 S1 D"), lambda: 2 * T + 1, 2), 3, 2))
    made.append(_trial("empty vectors", tiles(rng, beats("S1 S1 S1 S1 S1 D"), int, 2), 3, 2, directed=True))
    zeros = [0] * 3 + [1] + [0] * 4 + [2, 0, 0]
    made.append(_trial("blocks of no row", tiles(rng, beats("1 S1 2 3 S1 4 5 S1 6 7 8 S1 9 8 7 S2 D"),
                                                 iter(zeros).__next__, 1), 4, 1, directed=True))
    line = tiles(rng, beats("1 2 D"), lambda: 3, 2)
    for name, text in (("no row", "1 S1 2 S1 D"), ("nothing", "S1 1 S1 D")):
        vectors = tiles(rng, beats(text), lambda: 0, 2)
        made.append(Trial(f"done ends a vector, then {name}", {"in0": [*line, *vectors]},
                          {"out0": [*_expected(line, 2, 2), *_expected(vectors, 3, 2)]}, {"n": 2}, directed=True))
    for rank in (0, 1, 2):
        for name, outer in corner_streams(rank, Beat).items():
            n = rng.randint(1, 3)
            stream = tiles(rng, outer, lambda: rng.randint(0, 2 * T), n)
            made.append(_trial(f"{name}, rank {rank + 2}", stream, rank + 2, n))
    for i in range(60):
        rank, n = i % 3, rng.choice([1, 1, 2, 3, COLUMNS])
        outer = random_runs(rng, rank, Beat, 4)
        choices = rng.choice([[0, 1, 2, T, T + 1], [0, 0, 0, 1], [1], [T]])
        stream = tiles(rng, outer, partial(rng.choice, choices), n)
        made.append(_trial(f"random {i}, rank {rank + 2}", stream, rank + 2, n))
    return (*made, *wrong_trials())


def _cover(coverage: Coverage, _) -> None:
    for trial in trials():
        if trial.error:
            continue
        n = trial.cfg["n"]
        coverage.hit_if_declared([f"rank {trial.name[-1]}"] if ", rank" in trial.name else [])
        coverage.hit_if_declared(["1 column"] * (n == 1) + ["all columns"] * (n == COLUMNS))
        filled, hollow = False, 0  # of the vector: a row, blocks of no row at its end
        for b in trial.inputs["in0"]:
            if b.done:
                coverage.hit_if_declared(["row held until done"] if filled else [])
            elif b.empty:
                coverage.hit("empty vector")
            elif b.stop:
                coverage.hit_if_declared(["tile of several row tiles"] * (b.stop == 1)
                                         + ["block of 1 row"] * (b.rows == 1) + ["block of T rows"] * (b.rows == T))
                hollow = 0 if b.rows else hollow + 1
                filled = filled or b.rows > 0
                if hollow and b.stop < 3:
                    coverage.hit("block of no row vanishes")
                if hollow and b.stop >= 3:
                    coverage.hit("vector ends with a block of no row" if filled else "vector of no row")
                    coverage.hit_if_declared(["vector ends with several blocks of no row"] * (filled and hollow > 1))
            if b.done or b.stop >= 3:
                filled, hollow = False, 0


results = cached_results("unpack_rows", UNIT, BINS, trials, _cover, pressed_bench)
test_streams_against_the_interpreter, test_same_cycles_on_both = result_tests(results)


def test_latency(simulator):
    found = {result.name: result for result in results(simulator)}
    stamps = found["timing/0"].stamps
    # The first block (of three tiles) and the sixth, whose tile is the first of a vector with two empty ones behind it.
    assert stamps["out0"][0] - stamps["in0"][2] == unit_timing("unpack_rows").latency


def test_model_has_the_same_cycles(simulator):
    compare_with_model(simulator, UNIT, trials())


def test_rate(simulator):
    """A row's tile a cycle at the output, whatever the blocks."""
    assert_rates(simulator, UNIT, trials(), "out0")


@pytest.mark.parametrize("trial", wrong_trials(), ids=lambda trial: trial.name)
def test_the_interpreter_refuses_the_same(trial):
    with pytest.raises(StreamProtocolError):
        _expected(trial.inputs["in0"], 3, 2)


def test_parameters_are_checked():
    with pytest.raises(ValueError, match="tiles of 2 rows and 64 bits do not give rows of 16 bits, 1 to a beat"):
        UnpackRows(BeatLayout(64, 2), ROW, 8)
    with pytest.raises(ValueError, match="a power of two from 2 on, not 1"):
        UnpackRows(TILE, ROW, 1)
