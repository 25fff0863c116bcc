"""Bench of ``step_hw/units/promote.py`` and its model."""

from functools import cache
from itertools import pairwise
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
from step_hw.units.promote import Promote
from step_lang import ops

UNIT = Promote(LAYOUT)
BINS = [
    "empty stream", "single element stream", "bare stop", "starts with bare stop", "bare stop after bare stop",
    "back to back streams", "in0 blocked", "out0 blocked", "out0 starved", "rank 0", "rank > 0", "bare stop last",
    "stop of rank that is not the last",
]


def _trial(name, stream, rank, directed=False) -> Trial:
    [out] = golden(ops.promote, [rank], [stream])
    return Trial(name, {"in0": stream}, {"out0": out}, {"rank": rank}, directed=directed)


@cache
def trials() -> tuple[Trial, ...]:
    rng = Random("promote")
    made = examples("promote", lambda example: {"rank": example.ranks[0]})
    made.append(_trial("timing", words("1 2 3 4 5 6 7 8 9 D"), 0, directed=True))
    made.append(_trial("stops", words("1 S1 2 S1 S1 S2 3 S2 S2 D D 5 S2 D"), 2, directed=True))
    for rank in (0, 1, 2):
        for name, stream in corner_streams(rank, lambda: element(rng)).items():
            made.append(_trial(f"{name}, rank {rank}", stream, rank))
    for i in range(30):
        rank = rng.randint(0, 3)
        made.append(_trial(f"random {i}", random_runs(rng, rank), rank))
    made.append(Trial("stop above the rank", {"in0": words("1 S1 2 3 S2 D")}, {}, {"rank": 1}, ErrorCode.STOP_RANGE))
    return tuple(made)


def _cover(coverage: Coverage, _) -> None:
    for trial in trials():
        rank, stream = trial.cfg["rank"], trial.inputs["in0"]
        coverage.hit("rank > 0" if rank else "rank 0")
        for beat, after in pairwise(stream):
            if beat.stop == rank and not beat.done:
                coverage.hit_if_declared(["stop of rank that is not the last"] if not after.done else
                                         ["bare stop last"] if beat.empty else [])


results = cached_results("promote", UNIT, BINS, trials, _cover)
test_streams_against_the_interpreter, test_same_cycles_on_both = result_tests(results)


def test_latency_and_interval(simulator):
    [result] = [result for result in results(simulator) if result.name == "timing/0"]
    assert_timing("promote", result)


def test_model_has_the_same_cycles(simulator):
    compare_with_model(simulator, UNIT, trials())
