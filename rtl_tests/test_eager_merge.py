"""Bench of ``step_hw/units/eager_merge.py`` and its model."""

from functools import cache
from itertools import pairwise
from random import Random

import pytest

from rtl_tests.harness import DONE, Beat, Coverage
from rtl_tests.model_bench import ModelCase, assert_model_equals_rtl
from rtl_tests.routing_bench import (
    CHUNKS,
    GRANTS,
    Trial,
    assert_no_latency,
    assert_rates,
    bench,
    chunk,
    compare_with_model,
    examples,
    selector_beat,
)
from rtl_tests.shape_bench import LAYOUT, WORD, cached_results, result_tests, with_trials, words
from step_hw.unit import ErrorCode
from step_hw.units.eager_merge import EagerMerge
from step_lang import ops
from step_lang.arbitration import rotating_priority
from step_lang.worked_examples import EXAMPLES

UNIT = EagerMerge(LAYOUT, 3)
NAMELESS = EagerMerge(LAYOUT, 3, selector=False)
WIDE = EagerMerge(LAYOUT, 66)
BINS = [
    "empty stream", "single element stream", "bare stop", "starts with bare stop", "back to back streams",
    "in0 blocked", "in1 blocked", "in2 blocked", "out0 blocked", "out1 blocked", "out0 starved", "rank 0", "rank 1",
    "rank 2", "an input twice in a row", "selector after the chunk's first beat", "selector before it",
    "an input without a chunk",
]


def _trial(name, unit, rank, streams, counts=None, **more) -> Trial:
    if counts is None:
        counts = [sum(not b.done and b.stop == rank for stream in streams for b in stream)]
    return Trial(name, lambda *x: ops.eager_merge(x), (rank,) * unit.n, (WORD,) * unit.n, streams, {"rank": rank},
                 counts=counts, outputs=1 + unit.selector, **more)


def _random(name, unit: EagerMerge, rng: Random, runs: int, rank: int, most: int = 4) -> Trial:
    streams: list[list[Beat]] = [[] for _ in range(unit.n)]
    counts = []
    for _ in range(runs):
        counts.append(0)
        for stream in streams:
            for _ in range(rng.choice([0, 1, rng.randint(1, most)])):
                counts[-1] += 1
                stream += chunk(rng, rank)
            stream.append(DONE)
    return _trial(name, unit, rank, streams, counts)


def _wrong(name, rank, streams, error) -> Trial:
    return _trial(name, UNIT, rank, [words(text) for text in streams], error=error, directed=True)


@cache
def trials() -> tuple[Trial, ...]:
    rng = Random("eager_merge")
    made = []
    for example, trial in examples("eager_merge", lambda example: {}):
        streams = [*trial.inputs, *[[DONE]] * (UNIT.n - len(trial.inputs))]
        made.append(_trial(trial.name, UNIT, example.ranks[0], streams, directed=True))
    made.append(_trial("timing", UNIT, 0, [words("1 2 3 4 5 D")] * 3, directed=True))
    made.append(_trial("turns", UNIT, 1, [[*(words("1 2 3 S1") * 4), DONE]] * 3, directed=True))
    made.append(_trial("empty", UNIT, 1, [[DONE, DONE]] * 3, [0, 0], directed=True))
    for i in range(48):
        made.append(_random(f"random {i}", UNIT, rng, rng.randint(1, 3), i % 3))
    made += [
        _wrong("input ends inside a chunk", 1, ["1 S1 2 D", "D", "D"], ErrorCode.PROTOCOL),
        _wrong("stop above the rank", 1, ["1 S1 2 S2 D", "D", "D"], ErrorCode.STOP_RANGE),
        _wrong("bare stop where a chunk is an element", 0, ["1 D", "D", "S1 D"], ErrorCode.STOP_RANGE),
    ]
    return tuple(made)


@cache
def wide_trials() -> tuple[Trial, ...]:
    rng = Random("wide")
    return tuple(_random(f"wide {i}", WIDE, rng, 1, i % 2, 2) for i in range(3))


def _cover(coverage: Coverage, found) -> None:
    for trial, result in with_trials(found, trials()):
        rank = trial.cfg["rank"]
        if trial.error:
            continue
        coverage.hit(f"rank {rank}")
        order = [k for _, k in result.notes[0]]
        coverage.hit_if_declared(["an input twice in a row"] if any(a == b for a, b in pairwise(order)) else [])
        coverage.hit_if_declared(["an input without a chunk"] if any(s == [DONE] for s in trial.inputs) else [])
        data = result.beats["out0"]
        begins = [k for k, beat in enumerate(data) if not beat.done and (k == 0 or data[k - 1].done
                                                                        or data[k - 1].stop == rank)]
        names = [stamp for stamp, beat in zip(result.stamps["out1"], result.beats["out1"]) if not beat.done]
        for name, begin in zip(names, begins, strict=True):
            first = result.stamps["out0"][begin]
            if name != first:
                coverage.hit("selector after the chunk's first beat" if name > first else "selector before it")


results = cached_results("eager_merge", UNIT, BINS, trials, _cover, bench)
test_streams_against_the_interpreter, test_same_cycles_and_grants_on_both = result_tests(results)


def test_both_orders_of_the_worked_example(simulator):
    """Who arrives first is served first."""
    cases = []
    for name, late in (("eager_merge", "in1"), ("eager_merge_other_order", "in0")):
        [example] = [example for example in EXAMPLES if example.name == name]
        inputs = {f"in{k}": words(text) for k, text in enumerate(example.inputs)} | {"in2": [DONE]}
        starts = {late: [4] * len(inputs[late])}
        order = [0, 1] if late == "in1" else [1, 0]
        expected = {"out0": words(example.outputs[0]), "out1": [*(selector_beat([k]) for k in order), DONE]}
        cases.append(ModelCase(name, inputs, {"rank": 1}, starts, expected=expected))
    found = assert_model_equals_rtl(simulator, UNIT, cases, agents=GRANTS)
    assert [[k for _, k in rtl.notes[0]] for _, rtl in found] == [[0, 1], [1, 0]]


def test_no_latency_and_a_beat_every_cycle(simulator):
    """From input to input and from chunk to chunk, both outputs."""
    found = assert_no_latency("eager_merge", results(simulator))
    assert found["timing/0"].stamps["out1"] == found["timing/0"].stamps["out0"]


def test_rate(simulator):
    """Beats that leave a cycle, each in the cycle in which it is taken: from three inputs in turn, and from one."""
    made = []
    for name, (rank, beats_) in CHUNKS.items():
        for how, used in (("turns", 3), ("one input", 1)):
            stream = [*beats_ * (120 // (used * len(beats_)) + 1), DONE]
            streams = [stream if k < used else [DONE] for k in range(UNIT.n)]
            made.append(_trial(f"{name}, {how}", UNIT, rank, streams))
    assert_rates(simulator, UNIT, made, "out0")


def test_nobody_starves(simulator):
    """Inputs that always have a chunk are served in turn; among those left, as `rotating_priority` says."""
    for trial, result in with_trials(results(simulator), trials()):
        if not result.name.endswith("/0") or trial.error or len(trial.counts) > 1:
            continue
        left = [sum(not b.done and b.stop == trial.cfg["rank"] for b in stream) for stream in trial.inputs]
        last, expected = None, []
        while any(left):
            last = rotating_priority([count > 0 for count in left], last)
            left[last] -= 1
            expected.append(last)
        assert [k for _, k in result.notes[0]] == expected, result.name


def test_without_selectors(simulator):
    rng = Random("nameless")
    made = [_random(f"nameless {i}", NAMELESS, rng, 2, i % 3) for i in range(9)]
    bench(simulator, NAMELESS, made)
    compare_with_model(simulator, NAMELESS, made)


@pytest.mark.long
def test_66_inputs(simulator):
    bench(simulator, WIDE, wide_trials())
    compare_with_model(simulator, WIDE, wide_trials())


def test_model_has_the_same_cycles_and_grants(simulator):
    compare_with_model(simulator, UNIT, trials())


def test_parameters_are_checked():
    with pytest.raises(ValueError, match="not 129"):
        EagerMerge(LAYOUT, 129)
    assert NAMELESS.module_name != UNIT.module_name != WIDE.module_name
