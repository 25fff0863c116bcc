"""Bench of ``step_hw/units/expand.py`` and its model."""

from functools import cache
from random import Random

from rtl_tests.harness import DONE, Coverage, bare, corner_streams
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
from step_hw.beat import BeatLayout
from step_hw.unit import ErrorCode
from step_hw.units.expand import Expand
from step_lang import ops
from step_lang.dims import ragged

REF = BeatLayout(32, 2)
UNIT = Expand(LAYOUT, REF)
BINS = [
    "empty stream", "bare stop", "starts with bare stop", "bare stop after bare stop", "back to back streams",
    "in0 blocked", "in1 blocked", "out0 blocked", "out0 starved", "b = 0", "b > 0", "value stays", "value leaves",
    "bare reference leaves the value", "bare reference takes an element", "bare reference takes a bare value",
]


def _values(ref, b, rng):
    """A value stream for ``ref``: a beat for each stop >= b, with that stop; some bare where ``ref`` has nothing."""
    made = []
    served = 0  # elements of the reference that this value serves
    for beat in ref:
        served += not beat.empty
        if beat.done:
            made.append(DONE)
        elif beat.stop >= b:
            hollow = not served and beat.stop > b and rng.random() < 0.4
            hollow = hollow or (b == 0 and beat.empty)
            made.append(bare(beat.stop) if hollow else element(rng)._replace(stop=beat.stop))
            served = 0
    return made


def _trial(name, values, ref, rank, b, directed=False) -> Trial:
    shape = tuple(ragged(f"d{k}") for k in range(rank, -1, -1))
    shapes = (shape[:rank + 1 - b] + (1,) * b, shape)
    [out] = golden(lambda x, r: ops.expand(x, r, b), [rank, rank], [values, ref], shapes)
    return Trial(name, {"in0": values, "in1": ref}, {"out0": out}, {"b": b}, directed=directed)


def _misaligned(name, values, ref, b, given) -> Trial:
    return Trial(name, {"in0": words(values), "in1": words(ref)}, {"out0": words(given)}, {"b": b},
                 ErrorCode.MISALIGNED, directed=True)


@cache
def trials() -> tuple[Trial, ...]:
    rng = Random("expand")
    made = examples("expand", lambda example: {"b": 1})
    stream = words("1 2 3 4 5 6 7 8 9 S1 D")
    made.append(_trial("timing", stream, stream, 1, 0, directed=True))
    made.append(_trial("timing of one value", words("1 S1 D"), stream, 1, 1, directed=True))
    made.append(_trial("hollow", words("1 S2 S2 3 S2 D"), words("1 S1 S2 S2 3 4 S2 D"), 2, 1 + 1, directed=True))
    for rank in (0, 1, 2):
        for name, ref in corner_streams(rank, lambda: element(rng)).items():
            b = rng.randint(0, rank)
            made.append(_trial(f"{name}, rank {rank}", _values(ref, b, rng), ref, rank, b))
    for i in range(40):
        rank = rng.randint(0, 3)
        b = rng.randint(0, rank)
        ref = random_runs(rng, rank)
        made.append(_trial(f"random {i}", _values(ref, b, rng), ref, rank, b))
    made += [
        _misaligned("value ends early", "1 S1 D", "4 5 S1 6 S1 D", 1, "1 1 S1"),
        _misaligned("reference ends early", "1 S1 2 S1 D", "4 5 S1 D", 1, "1 1 S1"),
        _misaligned("reference ends at an element", "1 2 D", "4 D", 0, "1"),
        _misaligned("value ends before a bare stop", "1 S2 D", "4 S2 S1 5 S2 D", 2, "1 S2"),
        _misaligned("stops differ", "1 S1 2 S2 D", "4 S1 5 6 S1 7 S2 D", 1, "1 S1 2"),
        _misaligned("no element for an element", "1 S2 S2 D", "4 S2 5 S2 D", 1, "1 S2"),
        _misaligned("an element for no element", "1 S1 2 S1 D", "4 S1 S1 D", 0, "1 S1"),
    ]
    return tuple(made)


def _cover(coverage: Coverage, _) -> None:
    for trial in trials():
        b = trial.cfg["b"]
        coverage.hit("b > 0" if b else "b = 0")
        if trial.error:
            continue
        values = iter(trial.inputs["in0"])
        for ref in trial.inputs["in1"]:
            leaves = ref.done or ref.stop >= b
            value = next(values) if leaves else None
            if not ref.empty:
                coverage.hit("value leaves" if leaves else "value stays")
            elif not ref.done:
                coverage.hit("bare reference leaves the value" if value is None else
                             "bare reference takes a bare value" if value.empty else "bare reference takes an element")


results = cached_results("expand", UNIT, BINS, trials, _cover)
test_streams_against_the_interpreter, test_same_cycles_on_both = result_tests(results)


def test_latency_and_interval(simulator):
    found = {result.name: result for result in results(simulator)}
    assert_timing("expand", found["timing/0"])
    assert_timing("expand", found["timing/0"], interval_of="in1")
    # One value for nine reference beats: it leaves with the last, and done with done.
    assert_timing("expand", found["timing of one value/0"], pairs=[(0, 8), (1, 9)], interval_of="in1")


def test_model_has_the_same_cycles(simulator):
    compare_with_model(simulator, UNIT, trials())
