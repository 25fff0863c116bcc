"""Bench of ``step_hw/units/zip.py`` and its model: a tile, a scalar and a tile again."""

from functools import cache
from random import Random

import pytest

from rtl_tests.harness import Beat, Coverage, beats, corner_streams, from_beats, to_beats
from rtl_tests.harness.beats import streams_of
from rtl_tests.shape_bench import (
    LAYOUT,
    Trial,
    assert_timing,
    cached_results,
    compare_with_model,
    random_runs,
    result_tests,
)
from step_hw.beat import BeatLayout
from step_hw.unit import ErrorCode
from step_hw.units.zip import Zip
from step_lang import ops
from step_lang.interpreter import Context
from step_lang.numerics import Numerics
from step_lang.types import Tile, Tuple, int8, scalar, u32
from step_lang.worked_examples import WorkedExample

TILE, SCALAR = Tile(2, 2, int8), scalar(u32)
TYPES = (SCALAR, TILE, TILE)
UNIT = Zip([BeatLayout(32), LAYOUT, LAYOUT])
BINS = [
    "empty stream", "single element stream", "bare stop", "starts with bare stop", "bare stop after bare stop",
    "back to back streams", "in0 blocked", "in1 blocked", "in2 blocked", "out0 blocked", "out0 starved",
    "one row", "two rows",
]


def _members(skeleton: list[Beat], rng: Random) -> list[list[Beat]]:
    """Three streams with the stops of ``skeleton``; the tiles of a tuple have the same count of rows."""
    made: list[list[Beat]] = [[], [], []]
    for beat in skeleton:
        rows = rng.randint(1, 2)
        for member, type_ in zip(made, TYPES):
            if beat.empty:
                member.append(beat)
            elif type_ == TILE:
                member.append(Beat(rng.getrandbits(16 * rows), rows, beat.stop))
            else:
                member.append(Beat(rng.getrandbits(32), 1, beat.stop))
    return made


def _trial(name, skeleton, rank, rng, directed=False) -> Trial:
    members = _members(skeleton, rng)
    _, operator = WorkedExample("zip", "zip", (), (rank, rank), ops.zip, (), ((4,) * (rank + 1),) * 2).build()
    context = Context(Numerics(), {}, {}, {})
    expected: list[Beat] = []
    for runs in zip(*map(streams_of, members)):
        x, y, z = (from_beats(run, type_, rank) for run, type_ in zip(runs, TYPES))
        [pair] = operator.interpret(context, [x, y])
        [outer] = operator.interpret(context, [pair, z])
        expected += to_beats(outer, Tuple((Tuple((SCALAR, TILE)), TILE)))
    return Trial(name, {f"in{k}": stream for k, stream in enumerate(members)}, {"out0": expected}, directed=directed)


def _wrong(name, streams, given, error=ErrorCode.MISALIGNED) -> Trial:
    inputs = {f"in{k}": beats(text, rows=rows) for k, (text, rows) in enumerate(streams)}
    joined = [b if b.empty else b._replace(data=b.data | b.data << 32 | b.data << 64) for b in beats(given, rows=2)]
    return Trial(name, inputs, {"out0": joined}, error=error, directed=True)


@cache
def trials() -> tuple[Trial, ...]:
    rng = Random("zip")
    made = [_trial("timing", beats("1 2 3 S1 S1 4 5 S1 6 7 S2 D"), 2, rng, directed=True)]
    for rank in (0, 2):
        for name, stream in corner_streams(rank, Beat).items():
            made.append(_trial(f"{name}, rank {rank}", stream, rank, rng))
    for i in range(30):
        rank = rng.randint(0, 3)
        made.append(_trial(f"random {i}", random_runs(rng, rank, Beat), rank, rng))
    made += [
        _wrong("stops differ", [("1 2 S1 D", 1), ("1 2 S1 D", 2), ("1 2 S2 D", 2)], "1"),
        _wrong("one is bare", [("1 S1 2 S1 D", 1), ("1 S1 S1 D", 2), ("1 S1 2 S1 D", 2)], "1 S1"),
        _wrong("one ends early", [("1 2 D", 1), ("1 D", 2), ("1 2 D", 2)], "1"),
        _wrong("first ends early", [("1 D", 1), ("1 2 D", 2), ("1 2 D", 2)], "1"),
        _wrong("rows differ", [("1 2 D", 1), ("1 2 D", 2), ("1 2 D", 1)], "", ErrorCode.SHAPE),
    ]
    return tuple(made)


def _cover(coverage: Coverage, found) -> None:
    for result in found:
        for beat in result.beats["out0"]:
            coverage.hit_if_declared([{0: "", 1: "one row", 2: "two rows"}[beat.rows]])


results = cached_results("zip", UNIT, BINS, trials, _cover)
test_streams_against_the_interpreter, test_same_cycles_on_both = result_tests(results)


def test_latency_and_interval(simulator):
    [result] = [result for result in results(simulator) if result.name == "timing/0"]
    assert_timing("zip", result)


def test_model_has_the_same_cycles(simulator):
    compare_with_model(simulator, UNIT, trials())


def test_a_zip_has_two_inputs():
    with pytest.raises(ValueError, match="at least two inputs, not 1"):
        Zip([LAYOUT])
