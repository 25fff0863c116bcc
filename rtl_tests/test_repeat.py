"""Bench of ``step_hw/units/repeat.py`` and its model."""

from functools import cache
from random import Random

from rtl_tests.harness import Coverage, corner_streams
from rtl_tests.shape_bench import (
    LAYOUT,
    Trial,
    assert_timing,
    cached_results,
    compare_with_model,
    element,
    examples,
    golden,
    random_runs,
    result_tests,
    words,
)
from step_hw.unit import ErrorCode
from step_hw.units.repeat import Repeat
from step_lang import ops

UNIT = Repeat(LAYOUT)
BINS = [
    "empty stream", "single element stream", "bare stop", "starts with bare stop", "bare stop after bare stop",
    "back to back streams", "in0 blocked", "out0 blocked", "out0 starved", "n = 1", "n > 1", "rank 0", "rank > 0",
]


def _trial(name, stream, rank, n, directed=False) -> Trial:
    [out] = golden(lambda x: ops.repeat(x, n), [rank], [stream])
    return Trial(name, {"in0": stream}, {"out0": out}, {"n": n}, directed=directed)


@cache
def trials() -> tuple[Trial, ...]:
    rng = Random("repeat")
    made = examples("repeat", lambda example: {"n": 2})
    made.append(_trial("timing", words("1 2 3 4 5 6 7 8 S1 D"), 1, 1, directed=True))
    made.append(_trial("timing of outputs", words("1 2 S1 S1 3 4 S1 D"), 1, 3, directed=True))
    for rank in (0, 1, 2):
        for name, stream in corner_streams(rank, lambda: element(rng)).items():
            made.append(_trial(f"{name}, rank {rank}", stream, rank, rng.randint(1, 3)))
    for i in range(30):
        rank = rng.randint(0, 3)
        made.append(_trial(f"random {i}", random_runs(rng, rank), rank, rng.randint(1, 4)))
    stream = words("1 2 S15 3 D")
    made.append(Trial("no level above 15", {"in0": stream}, {"out0": words("1 1 S1")}, {"n": 2}, ErrorCode.STOP_RANGE))
    return tuple(made)


def _cover(coverage: Coverage, _) -> None:
    for trial in trials():
        coverage.hit("n = 1" if trial.cfg["n"] == 1 else "n > 1")
        coverage.hit("rank > 0" if any(beat.stop for beat in trial.inputs["in0"]) else "rank 0")


results = cached_results("repeat", UNIT, BINS, trials, _cover)
test_streams_against_the_interpreter, test_same_cycles_on_both = result_tests(results)


def test_latency_and_interval(simulator):
    found = {result.name: result for result in results(simulator)}
    assert_timing("repeat", found["timing/0"])
    result = found["timing of outputs/0"]
    # With n copies the input advances every n cycles and the output every cycle.
    assert_timing("repeat", result, pairs=[(0, 2), (1, 5), (2, 6), (3, 9)], interval_of="out0")
    assert result.stamps["in0"] == [2, 5, 6, 9, 12, 13]


def test_model_has_the_same_cycles(simulator):
    compare_with_model(simulator, UNIT, trials())
