"""Bench of ``step_hw/units/partition.py`` and its model."""

from functools import cache
from itertools import pairwise
from random import Random

import pytest

from rtl_tests.harness import DONE, Beat, Coverage, bare, beats, random_stream
from rtl_tests.routing_bench import (
    CHUNKS,
    Trial,
    assert_rates,
    bench,
    chunk,
    compare_with_model,
    examples,
    replay,
    selector_beat,
)
from rtl_tests.shape_bench import LAYOUT, WORD, assert_timing, cached_results, result_tests, words
from step_hw.unit import ErrorCode
from step_hw.units.partition import Partition
from step_lang import ops
from step_lang.dims import ragged
from step_lang.types import Selector

UNIT = Partition(LAYOUT, 5, 3)
WIDE = Partition(LAYOUT, 128, 66)
BINS = [
    "empty stream", "single element stream", "bare stop", "starts with bare stop", "bare stop after bare stop",
    "back to back streams", "in0 blocked", "in1 blocked", "out0 blocked", "out1 blocked", "out2 blocked",
    "out0 starved",
    "rank 0", "rank 1", "rank 2", "no output", "one output", "several outputs", "all outputs", "empty chunk",
    "bare stop on the selector", "chunk of several beats", "outputs take a beat in different cycles",
]


def _apply(unit: Partition, rank: int):
    return lambda x, sel: ops.partition(x, sel, rank=rank, num_consumers=unit.n)


def _shapes(rank: int, outer: int):
    dims = tuple(ragged(f"d{k}") for k in range(outer + 1 + rank))
    return dims, dims[:outer + 1]


def _trial(name, unit, rank, outer, data, selectors, **more) -> Trial:
    """``outer``: the selector's rank."""
    return Trial(name, _apply(unit, rank), (rank + outer, outer), (WORD, Selector(unit.bits)), (data, selectors),
                 {"rank": rank}, _shapes(rank, outer), **more)


def _random(name, unit: Partition, rng: Random, runs: int, rank: int, outer: int, most: int) -> Trial:
    data, selectors = [], []
    for _ in range(runs):
        for beat in random_stream(rng, outer, Beat, 4):
            if beat.done:
                data.append(beat)
                selectors.append(beat)
            elif beat.empty:
                data.append(bare(beat.stop + rank))
                selectors.append(beat)
            else:
                made = chunk(rng, rank)
                data += [*made[:-1], made[-1]._replace(stop=rank + beat.stop)]
                bits = rng.sample(range(unit.n), rng.choice([0, 1, 1, 2, min(most, unit.n)]))
                selectors.append(selector_beat(bits, beat.stop))
    return _trial(name, unit, rank, outer, data, selectors)


def _wrong(name, rank, outer, data, selectors, error=ErrorCode.MISALIGNED) -> Trial:
    return _trial(name, UNIT, rank, outer, data, selectors, error=error, directed=True)


@cache
def trials() -> tuple[Trial, ...]:
    rng = Random("partition")
    made = [_trial(trial.name, UNIT, trial.cfg["rank"], trial.ranks[1], *trial.inputs, directed=True)
            for _, trial in examples("partition", lambda example: {"rank": example.ranks[0] - example.ranks[1]})]
    everywhere = [selector_beat(range(3)) for _ in range(8)]
    made.append(_trial("timing", UNIT, 0, 0, words("1 2 3 4 5 6 7 8 D"), [*everywhere, DONE], directed=True))
    turns = [selector_beat([k % 3]) for k in range(12)]
    made.append(_trial("turns", UNIT, 1, 0, [*(words("1 2 S1") * 12), DONE], [*turns, DONE], directed=True))
    made.append(_trial("empty", UNIT, 1, 0, [DONE, DONE], [DONE, DONE], directed=True))
    for i in range(48):
        made.append(_random(f"random {i}", UNIT, rng, rng.randint(1, 3), i % 3, i // 3 % 3, 3))
    ones = beats("1 2 1 D")
    made += [
        _wrong("stops differ", 1, 1, words("1 S1 2 S2 D"), beats("1 S1 2 S1 D")),
        _wrong("selector too early done", 0, 0, words("1 2 3 4 D"), ones),
        _wrong("stream too early done", 1, 0, words("1 S1 2 S1 D"), ones),
        _wrong("bare chunk element for a selector", 0, 1, words("1 S1 S1 D"), beats("1 S1 2 S1 D")),
        _wrong("bare selector for a chunk", 1, 1, words("1 S1 2 S2 D"), beats("1 S1 S1 D")),
        _wrong("bare selector inside a chunk", 1, 1, words("1 S2 3 S2 D"), [selector_beat([0], 1), bare(1), DONE]),
        _wrong("stream ends inside a chunk", 1, 0, words("1 S1 2 D"), ones, ErrorCode.PROTOCOL),
        _wrong("bit without an output", 0, 0, words("1 2 3 D"), [*beats("1"), selector_beat([0, 3]), *beats("1 D")],
               ErrorCode.SELECTOR),
    ]
    return tuple(made)


@cache
def wide_trials() -> tuple[Trial, ...]:
    rng = Random("wide")
    made = [_random(f"wide {i}", WIDE, rng, 1, i % 2, 0, 66) for i in range(3)]
    selectors = [selector_beat(bits) for bits in ([0, 65], [31, 32, 61, 62, 63, 64], [65], [])]
    made.append(_trial("corners", WIDE, 0, 0, words("1 2 3 4 D"), [*selectors, DONE], directed=True))
    made.append(_trial("bit 127", WIDE, 0, 0, words("1 2 D"), [selector_beat([1]), selector_beat([127]), DONE],
                       error=ErrorCode.SELECTOR))
    return tuple(made)


def _cover(coverage: Coverage, found) -> None:
    for trial in trials():
        coverage.hit(f"rank {trial.cfg['rank']}")
        for beat in trial.inputs[1]:
            if beat.empty:
                coverage.hit_if_declared(["bare stop on the selector"] if not beat.done else [])
            else:
                count = beat.data.bit_count()
                coverage.hit({0: "no output", 1: "one output", 3: "all outputs"}.get(count, "several outputs"))
                coverage.hit_if_declared(["several outputs"] if count > 1 else [])
        rank = trial.cfg["rank"]
        if trial.error or not rank:
            continue
        for before, beat in pairwise([bare(rank), *trial.inputs[0]]):
            if beat.empty and not beat.done and beat.stop >= rank and (before.stop >= rank or before.done):
                coverage.hit("empty chunk")
            if before.stop < rank and not before.done:
                coverage.hit("chunk of several beats")
    for result in found:
        if result.name.startswith("timing/"):
            for stamps in zip(*(result.stamps[f"out{k}"] for k in range(3))):
                coverage.hit_if_declared(["outputs take a beat in different cycles"] if len(set(stamps)) > 1 else [])


results = cached_results("partition", UNIT, BINS, trials, _cover, bench)
test_streams_against_the_interpreter, test_same_cycles_on_both = result_tests(results)


def test_worked_examples_say_what_the_bench_expects():
    for example, trial in examples("partition", lambda example: {"rank": example.ranks[0] - example.ranks[1]}):
        made = replay(trial, [])
        assert len(made) == len(example.outputs)
        for k, text in enumerate(example.outputs):
            assert made[f"out{k}"] == words(text), example.name


@pytest.mark.parametrize("output", ["out0", "out1", "out2"])
def test_latency_and_interval(simulator, output):
    found = {result.name: result for result in results(simulator)}
    assert_timing("partition", found["timing/0"], output)


def test_one_beat_a_cycle_from_chunk_to_chunk(simulator):
    [result] = [result for result in results(simulator) if result.name == "turns/0"]
    assert result.stamps["in0"] == list(range(result.stamps["in0"][0], result.stamps["in0"][0] + 25))


def test_rate(simulator):
    """Beats that leave the data input a cycle: chunks to each output in turn, to two, to all and to none."""
    made = []
    for name, (rank, beats_) in CHUNKS.items():
        count = 120 // len(beats_) + 1
        for how, to in (("turns", [[k % 3] for k in range(count)]),
                        ("several", [[[0, 1], [2], [0, 1, 2], []][k % 4] for k in range(count)])):
            selectors = [*map(selector_beat, to), DONE]
            made.append(_trial(f"{name}, {how}", UNIT, rank, 0, [*beats_ * count, DONE], selectors))
    assert_rates(simulator, UNIT, made, "in0")


def test_selectors_of_128_bits(simulator):
    bench(simulator, WIDE, wide_trials())
    compare_with_model(simulator, WIDE, wide_trials())


def test_model_has_the_same_cycles(simulator):
    compare_with_model(simulator, UNIT, trials())


def test_parameters_are_checked():
    with pytest.raises(ValueError, match="not 4 and 3 bits"):
        Partition(LAYOUT, 3, 4)
    with pytest.raises(ValueError, match="not 2 and 129 bits"):
        Partition(LAYOUT, 129, 2)
