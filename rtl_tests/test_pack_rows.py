"""Bench of ``step_hw/units/pack_rows.py`` and its model."""

from functools import cache
from random import Random

import pytest

from rtl_tests.harness import Beat, Coverage, bare, beats, corner_streams, random_stream
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
    rows,
)
from rtl_tests.shape_bench import Trial, cached_results, compare_with_model, result_tests
from step_hw.beat import BeatLayout
from step_hw.unit import ErrorCode
from step_hw.units.pack_rows import PackRows
from step_lang import ops
from step_lang.errors import StreamProtocolError
from step_lang.timing import unit_timing

UNIT = PackRows(ROW, TILE, COLUMNS)
BINS = [
    "empty stream", "single element stream", "bare stop", "starts with bare stop", "bare stop after bare stop",
    "back to back streams", "in0 blocked", "out0 blocked", "out0 starved", "rank 1", "rank 2", "rank 3", "1 column",
    "all columns", "1 row to a block", "T rows to a block", "full block", "block that a group ends",
    "block that done ends", "full block that a group ends", "full block that done ends", "empty group",
]


def _expected(stream, rank, n, most) -> list[Beat]:
    return golden(lambda x: ops.pack_rows(x, most), [stream], [ROW_TYPE], [rank], n, TILE_TYPE)


def _trial(name, outer, rank, n, most, rng, directed=False) -> Trial:
    """``outer``: elements are rows, ``rank`` its rank."""
    stream = rows(rng, outer, n)
    return Trial(name, {"in0": stream}, {"out0": _expected(stream, rank + 1, n, most)}, {"n": n, "rows": most},
                 directed=directed)


def _wrong(name, stream, error=ErrorCode.SHAPE, right=4) -> Trial:
    """A stream of rank 2, rows of two tiles, whose first ``right`` beats are right."""
    begun = [*stream[:right], *([] if stream[right - 1].stop == 2 else [beat(Random(name)), beat(Random(name), 1, 2)])]
    begun.append(DONE)
    return Trial(name, {"in0": stream}, {"out0": _expected(begun, 2, 2, 2)}, {"n": 2, "rows": 2}, error, directed=True)


@cache
def wrong_trials() -> tuple[Trial, ...]:
    rng = Random("wrong")
    good = rows(rng, beats("1 2"), 2)
    good = [b._replace(stop=min(b.stop, 1)) for b in good]
    one, end = beat(rng), beat(rng, 1, 2)
    return (
        _wrong("row of one tile", [*good, end, DONE]),
        _wrong("row of three tiles", [*good, one, one, end, DONE]),
        _wrong("row without tiles", [*good, bare(1), one, end, DONE]),
        _wrong("group ends with a row without tiles", [*good, bare(2), DONE]),
        _wrong("first row of a group without tiles", [*good, one, end, bare(1), one, end, DONE], right=6),
        _wrong("done inside a row", [*good, one, DONE], ErrorCode.PROTOCOL),
        _wrong("bare stop inside a row", [*good, one, bare(2), DONE], ErrorCode.PROTOCOL),
    )


@cache
def trials() -> tuple[Trial, ...]:
    rng = Random("pack_rows")
    made = [_trial("timing", beats("1 2 3 4 5 S1 6 S1 S1 7 8 S1 D"), 1, 3, 2, rng, directed=True)]
    for n, most in ((1, 1), (1, T), (2, 1), (3, 3), (COLUMNS, 1), (COLUMNS, T)):
        # Whole blocks, then groups of one row, then of two: every bank change that there is.
        outer = [Beat() for _ in range(128 // n)] + [Beat(stop=1)] + [Beat(stop=1) for _ in range(64 // n)]
        outer += [b for _ in range(64 // n) for b in (Beat(), Beat(stop=1))] + [DONE]
        made.append(_trial(f"rate {n} {most}", outer, 1, n, most, rng))
    made.append(_trial("empty groups", beats("S1 S1 S1 S1 S1 S1 D"), 1, 1, 2, rng, directed=True))
    line, groups = rows(rng, beats("1 2 3 D"), 2), rows(rng, beats("S1 4 5 S1 D"), 2)
    made.append(Trial("done ends a group", {"in0": [*line, *groups]},
                      {"out0": [*_expected(line, 1, 2, 2), *_expected(groups, 2, 2, 2)]}, {"n": 2, "rows": 2},
                      directed=True))
    for rank in (0, 1, 2):
        for name, outer in corner_streams(rank, Beat).items():
            made.append(_trial(f"{name}, rank {rank + 1}", outer, rank, rng.randint(1, 3), rng.randint(1, T), rng))
    for i in range(48):
        rank = i % 3
        outer = [b for _ in range(rng.randint(1, 3)) for b in random_stream(rng, rank, Beat, rng.choice([4, 9]))]
        n = rng.choice([1, 1, 2, 3, COLUMNS])
        made.append(_trial(f"random {i}, rank {rank + 1}", outer, rank, n, rng.randint(1, T), rng))
    return (*made, *wrong_trials())


def _cover(coverage: Coverage, _) -> None:
    for trial in trials():
        if trial.error:
            continue
        n, most = trial.cfg["n"], trial.cfg["rows"]
        coverage.hit_if_declared([f"rank {trial.name[-1]}"] if ", rank" in trial.name else [])
        coverage.hit_if_declared(["1 column"] * (n == 1) + ["all columns"] * (n == COLUMNS))
        coverage.hit_if_declared(["1 row to a block"] * (most == 1) + ["T rows to a block"] * (most == T))
        outs = trial.expected["out0"]
        for k, out in enumerate(outs):
            if out.stop and not out.empty:
                full, after = out.rows == most, outs[k + 1].done
                kind = "a group ends" if out.stop >= 2 else "done ends" if after else ""
                coverage.hit_if_declared(["full block"] if full else [])
                if kind:
                    coverage.hit(f"full block that {kind}" if full else f"block that {kind}")
        coverage.hit_if_declared(["empty group"] if any(b.empty and b.stop for b in trial.inputs["in0"]) else [])


results = cached_results("pack_rows", UNIT, BINS, trials, _cover, pressed_bench)
test_streams_against_the_interpreter, test_same_cycles_on_both = result_tests(results)


def test_latency(simulator):
    found = {result.name: result for result in results(simulator)}
    stamps = found["timing/0"].stamps
    # Blocks of three tiles: two rows, two rows, the fifth row, the sixth, the empty group, the last two.
    completing = [5, 11, 14, 17, 18, 24]
    first = [stamps["out0"][3 * k] - stamps["in0"][i] for k, i in enumerate(completing)]
    assert first[:4] == [unit_timing("pack_rows").latency] * 4, first


def test_model_has_the_same_cycles(simulator):
    compare_with_model(simulator, UNIT, trials())


def test_rate(simulator):
    """A beat a cycle at the input, whatever the blocks."""
    assert_rates(simulator, UNIT, trials(), "in0")


@pytest.mark.parametrize("trial", wrong_trials(), ids=lambda trial: trial.name)
def test_the_interpreter_refuses_the_same(trial):
    with pytest.raises(StreamProtocolError):
        _expected(trial.inputs["in0"], 2, 2, 2)


def test_parameters_are_checked():
    with pytest.raises(ValueError, match="rows of 16 bits, 1 to a beat, do not make tiles of 2 rows and 64 bits"):
        PackRows(ROW, BeatLayout(64, 2), 8)
    with pytest.raises(ValueError, match="a power of two from 2 on, not 6"):
        PackRows(ROW, TILE, 6)
