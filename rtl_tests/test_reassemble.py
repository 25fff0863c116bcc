"""Bench of ``step_hw/units/reassemble.py`` and its model."""

from functools import cache
from itertools import pairwise
from random import Random

import pytest

from rtl_tests.harness import DONE, Beat, Coverage, bare, random_stream
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
from step_hw.units.reassemble import Reassemble
from step_lang import ops
from step_lang.types import Selector
from step_lang.worked_examples import EXAMPLES

UNIT = Reassemble(LAYOUT, 5, 3)
WIDE = Reassemble(LAYOUT, 128, 66)
BINS = [
    "empty stream", "bare stop", "back to back streams", "in0 blocked", "in1 blocked", "in2 blocked", "in3 blocked",
    "out0 blocked", "out0 starved", "rank 0", "rank 1", "rank 2", "empty group", "one chunk", "several chunks",
    "bare stop on the selector", "bare stop closes a group", "against index order", "in index order",
    "an input twice in a row", "priority wraps round",
]


def _trial(name, unit, rank, outer, streams, selectors, counts=None, **more) -> Trial:
    """``outer``: the selector's rank."""
    return Trial(
        name, lambda *x: ops.reassemble(x[:-1], x[-1], hollow=True), (*(rank for _ in streams), outer),
        (*(WORD for _ in streams), Selector(unit.bits)), (*streams, selectors), {"rank": rank, "hollow": 1},
        counts=[sum(b.data.bit_count() for b in selectors)] if counts is None else counts, **more)


def _random(name, unit: Reassemble, rng: Random, runs: int, rank: int, outer: int, most: int) -> Trial:
    streams: list[list[Beat]] = [[] for _ in range(unit.n)]
    selectors, counts = [], []
    for _ in range(runs):
        counts.append(0)
        for beat in random_stream(rng, outer, Beat, 4):
            if beat.empty:
                selectors.append(beat)
                continue
            bits = rng.sample(range(unit.n), rng.choice([0, 1, 2, min(most, unit.n), min(most, unit.n)]))
            selectors.append(selector_beat(bits, beat.stop))
            counts[-1] += len(bits)
            for i in bits:
                streams[i] += chunk(rng, rank)
        for stream in streams:
            stream.append(DONE)
    return _trial(name, unit, rank, outer, streams, selectors, counts)


def _wrong(name, rank, streams, selectors, error, hollow=1) -> Trial:
    trial = _trial(name, UNIT, rank, 0, [words(text) for text in streams], selectors, error=error, directed=True)
    trial.cfg = {"rank": rank, "hollow": hollow}
    return trial


@cache
def trials() -> tuple[Trial, ...]:
    rng = Random("reassemble")
    made = []
    for example, trial in examples("reassemble", lambda example: {}):
        made.append(_trial(trial.name, UNIT, example.ranks[0], example.ranks[-1], [*trial.inputs[:-1], [DONE]],
                           trial.inputs[-1], directed=True))
    pairs = [selector_beat([0, 1, 2]) for _ in range(4)]
    made.append(_trial("timing", UNIT, 0, 0, [words("1 2 3 4 D")] * 3, [*pairs, DONE], directed=True))
    made.append(_trial("turns", UNIT, 1, 0, [[*(words("1 2 3 S1") * 4), DONE]] * 3, [*pairs, DONE], directed=True))
    made.append(_trial("empty", UNIT, 1, 0, [[DONE, DONE]] * 3, [DONE, DONE], [0, 0], directed=True))
    for i in range(48):
        made.append(_random(f"random {i}", UNIT, rng, rng.randint(1, 3), i % 3, i // 3 % 3, 3))
    both, one = selector_beat([0, 1]), selector_beat([1])
    made += [
        _wrong("selected input is done", 0, ["1 D", "2 D", "D"], [both, both, DONE], ErrorCode.MISALIGNED),
        _wrong("one of the selected is done", 0, ["1 D", "2 3 D", "D"], [both, both, DONE], ErrorCode.MISALIGNED),
        _wrong("chunk left", 0, ["1 2 D", "D", "D"], [selector_beat([0]), DONE], ErrorCode.MISALIGNED),
        _wrong("input ends inside a chunk", 1, ["1 D", "D", "D"], [selector_beat([0]), DONE], ErrorCode.PROTOCOL),
        _wrong("stop above the rank", 1, ["1 S2 D", "D", "D"], [selector_beat([0]), DONE], ErrorCode.STOP_RANGE),
        _wrong("no level above 15", 1, ["D", "1 S1 D", "D"], [one._replace(stop=14), DONE], ErrorCode.STOP_RANGE),
        _wrong("no level above 15, bare", 1, ["D", "D", "D"], [bare(14), DONE], ErrorCode.STOP_RANGE),
        _wrong("bit without an input", 0, ["1 D", "2 D", "D"], [selector_beat([0, 3]), DONE], ErrorCode.SELECTOR),
        _wrong("no bit where a chunk is required", 1, ["D", "1 S1 D", "D"], [one, selector_beat([]), DONE],
               ErrorCode.SELECTOR, hollow=0),
    ]
    return tuple(made)


@cache
def wide_trials() -> tuple[Trial, ...]:
    rng = Random("wide")
    made = [_random(f"wide {i}", WIDE, rng, 1, i % 2, 0, 66) for i in range(3)]
    streams = [words("1 D") if k in (0, 31, 32, 61, 62, 65) else [DONE] for k in range(66)]
    selectors = [selector_beat([31, 32, 62, 65]), selector_beat([0, 61]), selector_beat([]), DONE]
    made.append(_trial("corners", WIDE, 0, 0, streams, selectors, directed=True))
    made.append(_trial("bit 127", WIDE, 0, 0, [[DONE]] * 66, [selector_beat([127]), DONE], error=ErrorCode.SELECTOR))
    return tuple(made)


def _cover(coverage: Coverage, found) -> None:
    for trial, result in with_trials(found, trials()):
        if trial.error:
            continue
        coverage.hit(f"rank {trial.cfg['rank']}")
        order = [k for _, k in result.notes[0]]
        at = 0
        for beat in trial.inputs[-1]:
            if beat.empty:
                coverage.hit_if_declared([] if beat.done else ["bare stop on the selector"])
                continue
            group, at = order[at:at + beat.data.bit_count()], at + beat.data.bit_count()
            coverage.hit({0: "empty group", 1: "one chunk"}.get(len(group), "several chunks"))
            if len(group) > 1:
                coverage.hit("in index order" if group == sorted(group) else "against index order")
            if any(b < a for a, b in pairwise(group)):
                coverage.hit("priority wraps round")
        if any(a == b for a, b in pairwise(order)):
            coverage.hit("an input twice in a row")
        if trial.cfg["rank"] and any(b.empty and b.stop > trial.cfg["rank"] for b in result.beats["out0"]):
            coverage.hit("bare stop closes a group")


results = cached_results("reassemble", UNIT, BINS, trials, _cover, bench)
test_streams_against_the_interpreter, test_same_cycles_and_grants_on_both = result_tests(results)


def test_both_orders_of_the_worked_example(simulator):
    """Who arrives first is served first."""
    cases = []
    for name, late in (("reassemble", 1), ("reassemble_other_order", 0)):
        [example] = [example for example in EXAMPLES if example.name == name]
        inputs = {f"in{k}": words(text) for k, text in enumerate(example.inputs[:-1])}
        inputs |= {"in2": [DONE], "in3": [selector_beat([1]), selector_beat([0, 1]), DONE]}
        # The selector that names both comes when the late one's chunk has not.
        starts = {"in0": [0, 0], "in1": [0, 0, 0], "in3": [0, 4, 4]}
        starts[f"in{late}"] = [0, 20, 20] if late else [20, 20]
        expected = {"out0": words(example.outputs[0])}
        cases.append(ModelCase(name, inputs, {"rank": 0, "hollow": 1}, starts, expected=expected, runs=1))
    found = assert_model_equals_rtl(simulator, UNIT, cases, agents=GRANTS)
    assert [[k for _, k in rtl.notes[0]] for _, rtl in found] == [[1, 0, 1], [1, 1, 0]]


def test_no_latency_and_a_beat_every_cycle(simulator):
    """From input to input and from group to group."""
    found = assert_no_latency("reassemble", results(simulator))
    # Nobody is late, so the priority rotates.
    assert [k for _, k in found["turns/0"].notes[0]] == [0, 1, 2] * 4


def test_rate(simulator):
    """Beats that leave a cycle, each in the cycle in which it is taken: groups of one chunk, of two and of three."""
    made = []
    for name, (rank, beats_) in CHUNKS.items():
        for size in (1, 2, 3):
            groups = 120 // (size * len(beats_)) + 1
            to = [[(k + j) % 3 for j in range(size)] for k in range(groups)]
            streams = [[*beats_ * sum(i in bits for bits in to), DONE] for i in range(3)]
            made.append(_trial(f"{name}, {size} to a group", UNIT, rank, 0, streams, [*map(selector_beat, to), DONE]))
    assert_rates(simulator, UNIT, made, "out0")


@pytest.mark.long
def test_selectors_of_128_bits(simulator):
    bench(simulator, WIDE, wide_trials())
    compare_with_model(simulator, WIDE, wide_trials())


def test_model_has_the_same_cycles_and_grants(simulator):
    compare_with_model(simulator, UNIT, trials())


def test_parameters_are_checked():
    with pytest.raises(ValueError, match="not 4 and 3 bits"):
        Reassemble(LAYOUT, 3, 4)
    with pytest.raises(ValueError, match="not 2 and 129 bits"):
        Reassemble(LAYOUT, 129, 2)
