"""Bench of ``step_hw/units/fork.py`` and its model."""

from functools import cache
from random import Random

import pytest

from rtl_tests.harness import Coverage, corner_streams
from rtl_tests.shape_bench import (
    LAYOUT,
    Trial,
    assert_timing,
    cached_results,
    compare_with_model,
    element,
    random_runs,
    result_tests,
    words,
)
from step_hw.units.fork import Fork

UNIT = Fork(LAYOUT, 3)
BINS = [
    "empty stream", "single element stream", "bare stop", "starts with bare stop", "back to back streams",
    "in0 blocked", "out0 blocked", "out1 blocked", "out2 blocked", "out0 starved",
    "all outputs at once", "one output before the others", "one output after the others",
]


def _trial(name, stream, directed=False) -> Trial:
    # Broadcast is implicit in the language: each consumer sees the stream itself.
    return Trial(name, {"in0": stream}, {f"out{k}": stream for k in range(UNIT.n)}, directed=directed)


@cache
def trials() -> tuple[Trial, ...]:
    rng = Random("fork")
    made = [_trial("timing", words("1 2 3 S1 S1 4 5 S1 6 7 S2 D"), directed=True)]
    for rank in (0, 2):
        for name, stream in corner_streams(rank, lambda: element(rng)).items():
            made.append(_trial(f"{name}, rank {rank}", stream))
    for i in range(30):
        rank = rng.randint(0, 3)
        made.append(_trial(f"random {i}", random_runs(rng, rank)))
    return tuple(made)


def _cover(coverage: Coverage, found) -> None:
    for result in found:
        for stamps in zip(*(result.stamps[f"out{k}"] for k in range(UNIT.n))):
            first, middle, last = sorted(stamps)
            coverage.hit_if_declared(
                [name for name, seen in (("all outputs at once", first == last),
                                         ("one output before the others", first < middle == last),
                                         ("one output after the others", first == middle < last)) if seen])


results = cached_results("fork", UNIT, BINS, trials, _cover)
test_every_output_gives_the_stream, test_same_cycles_on_both = result_tests(results)


@pytest.mark.parametrize("output", ["out0", "out1", "out2"])
def test_latency_and_interval(simulator, output):
    [result] = [result for result in results(simulator) if result.name == "timing/0"]
    assert_timing("fork", result, output)


def test_input_leaves_with_the_slowest_output(simulator):
    for result in results(simulator):
        slowest = [max(stamps) for stamps in zip(*(result.stamps[f"out{k}"] for k in range(UNIT.n)))]
        assert result.stamps["in0"] == slowest, result.name


def test_model_has_the_same_cycles(simulator):
    compare_with_model(simulator, UNIT, trials())


def test_a_fork_has_two_outputs():
    with pytest.raises(ValueError, match="at least two outputs, not 1"):
        Fork(LAYOUT, 1)
