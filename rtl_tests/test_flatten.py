"""Bench of ``step_hw/units/flatten.py`` and its model."""

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
from step_hw.units.flatten import Flatten
from step_lang import ops

UNIT = Flatten(LAYOUT)
BINS = [
    "empty stream", "single element stream", "bare stop", "starts with bare stop", "bare stop after bare stop",
    "back to back streams", "in0 blocked", "out0 blocked", "out0 starved", "lo = 0", "lo > 0", "stop up to lo",
    "stop merged", "stop above hi", "bare stop swallowed", "bare stop fused with the element before",
    "bare stop swallowed behind an open element", "done behind an element whose stop vanished",
    "bare stop fused with an element of a higher stop", "hi = rank", "element with a stop, hi = rank",
    "bare stop swallowed behind an element, hi = rank",
]


def _trial(name, stream, rank, lo, hi, directed=False) -> Trial:
    [out] = golden(lambda x: ops.flatten(x, lo, hi), [rank], [stream])
    return Trial(name, {"in0": stream}, {"out0": out}, {"lo": lo, "hi": hi, "rank": rank}, directed=directed)


@cache
def trials() -> tuple[Trial, ...]:
    rng = Random("flatten")
    made = examples("flatten", lambda example: {"lo": 0, "hi": 1, "rank": example.ranks[0]})
    made.append(_trial("timing", words("1 2 S1 3 S1 4 S2 5 S2 6 7 8 9 S2 D"), 2, 0, 1, directed=True))
    made.append(_trial("whole", words("1 2 S1 3 S1 4 S2 S2 5 S1 S1 6 7 8 S2 9 S2 S2 D D 10 S2 11 S2 D"), 2, 0, 2,
                       directed=True))
    stops = words("1 S1 S2 2 S2 S3 3 S2 S1 S3 4 S2 5 S3 S3 D")
    made.append(_trial("bare stops behind higher ones", stops, 3, 0, 2, directed=True))
    for rank in (1, 2, 3):
        for name, stream in corner_streams(rank, lambda: element(rng)).items():
            made.append(_trial(f"{name}, rank {rank}", stream, rank, 0, rng.randint(1, rank)))
    for i in range(40):
        rank = rng.randint(1, 3)
        lo = rng.randint(0, rank - 1)
        made.append(_trial(f"random {i}", random_runs(rng, rank), rank, lo, rng.randint(lo + 1, rank)))
    return tuple(made)


def _cover(coverage: Coverage, _) -> None:
    for trial in trials():
        lo, hi, whole = trial.cfg["lo"], trial.cfg["hi"], trial.cfg["hi"] == trial.cfg["rank"]
        coverage.hit("lo > 0" if lo else "lo = 0")
        coverage.hit_if_declared(["hi = rank"] if whole else [])
        last = 0  # stop of the last element
        open_ = 0  # stop of the element that is open
        for beat in trial.inputs["in0"]:
            kept = beat.stop > hi or 0 < beat.stop <= lo or (lo > 0 and beat.stop > 0)
            if beat.done:
                # An open element is always closed before: the stream ends with a stop of its rank, above hi.
                assert not open_
                coverage.hit_if_declared(["done behind an element whose stop vanished"] if whole and last else [])
            elif beat.stop > 0:
                coverage.hit("stop up to lo" if beat.stop <= lo else
                             "stop merged" if beat.stop <= hi else "stop above hi")
                if beat.empty and not kept:
                    coverage.hit("bare stop swallowed")
                    coverage.hit_if_declared(["bare stop swallowed behind an open element"] if open_ else [])
                    coverage.hit_if_declared(["bare stop swallowed behind an element, hi = rank"]
                                             if whole and last else [])
                elif beat.empty and open_:
                    coverage.hit("bare stop fused with the element before")
                    coverage.hit_if_declared(["bare stop fused with an element of a higher stop"] if open_ > 1 else [])
            if not (beat.empty and not beat.done and not kept):
                open_ = 0 if beat.empty or kept or whole else beat.stop
            if not beat.empty:
                last = beat.stop
                coverage.hit_if_declared(["element with a stop, hi = rank"] if whole and last else [])


results = cached_results("flatten", UNIT, BINS, trials, _cover)
test_streams_against_the_interpreter, test_same_cycles_on_both = result_tests(results)


def test_latency_and_interval(simulator):
    [result] = [result for result in results(simulator) if result.name == "timing/0"]
    assert_timing("flatten", result)


def test_nothing_is_held_where_no_stop_is_left(simulator):
    """A loop that goes through flatten(0, rank) gets each element when it has come, not with the next one."""
    pressed = [result for result in results(simulator) if result.name.startswith("whole/")]
    assert len(pressed) == 6
    [late] = [result for result in pressed if result.name == "whole/5"]  # offered in 3 of 10 cycles, taken at once
    kept = [i for i, beat in enumerate(next(t for t in trials() if t.name == "whole").inputs["in0"])
            if beat.done or not beat.empty]
    outs = late.stamps["out0"]
    assert [outs[o] - late.stamps["in0"][i] for o, i in enumerate(kept)] == [1] * len(outs)
    assert max(b - a for a, b in pairwise(late.stamps["in0"])) > 3


def test_model_has_the_same_cycles(simulator):
    compare_with_model(simulator, UNIT, trials())
