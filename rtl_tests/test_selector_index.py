"""Bench of ``selector_index`` in a map unit: narrow and wide selectors, the function's values, the model's cycles."""

from random import Random

import numpy as np
import pytest

from rtl_tests.harness import DONE, STREAM_BINS, Beat, Coverage, bare, beats, random_stream, stream_bins
from rtl_tests.harness.streams import corner_streams
from rtl_tests.model_bench import ModelCase, assert_model_equals_rtl, pressed
from step_hw.unit import ErrorCode
from step_hw.units.map import Map
from step_lang import fn
from step_lang.numerics import Numerics
from step_lang.timing import compute_timing
from step_lang.types import Selector, scalar, u32

pytestmark = pytest.mark.long

WIDTHS = (1, 3, 8, 100)


def _unit(n: int):
    params = {"function": fn.selector_index(), "in_types": (Selector(n),), "out_type": scalar(u32), "tile": 2,
              "rows_per_cycle": 1, "k_per_cycle": 2}
    return Map(**params), params


def _expected(stream, n: int):
    """Beats by the interpreter's function."""
    hot = [beat.data for beat in stream if not beat.empty]
    bits = np.array([[word >> k & 1 for k in range(n)] for word in hot], dtype=bool).reshape(-1, n)
    found = iter(fn.selector_index().apply(Numerics(), bits).reshape(-1).tolist())
    return [beat if beat.empty else beat._replace(data=next(found)) for beat in stream]


@pytest.mark.parametrize("n", WIDTHS)
def test_streams_and_cycles(simulator, n):
    rng = Random(f"selector_index {n}")
    coverage = Coverage(f"selector_index {n}", STREAM_BINS)
    unit, params = _unit(n)
    every = [Beat(1 << k) for k in range(n)]
    streams = {"every bit": [*every, *reversed(every), DONE]}
    streams |= corner_streams(2, lambda: Beat(1 << rng.randrange(n)))
    for i in range(8):
        runs = range(rng.randint(1, 3))
        streams[f"random {i}"] = [beat for _ in runs
                                  for beat in random_stream(rng, i % 4, lambda: Beat(1 << rng.randrange(n)), 3)]
    cases = []
    for name, stream in streams.items():
        coverage.hit_if_declared(stream_bins(stream))
        case = {"inputs": {"in0": stream}, "expected": {"out0": _expected(stream, n)}}
        cases += [ModelCase(name, **case), pressed(ModelCase(f"{name} pressed", **case), rng)]
    (_, rtl), *_ = assert_model_equals_rtl(simulator, unit, cases, params=params)
    timing = compute_timing("map", params)
    taken, given = rtl.stamps["in0"], rtl.pushes["out0"]
    assert [out - at - 1 for at, out in zip(taken, given, strict=True)] == [timing.latency] * len(given)
    assert given == list(range(given[0], given[0] + len(given))) and timing.interval == 1
    coverage.check()


@pytest.mark.parametrize("n", [3, 100])
def test_selectors_without_an_index(simulator, n):
    """None or several bits set: nothing of it leaves, and the sticky code tells."""
    unit, params = _unit(n)
    cases = [
        ModelCase(name, {"in0": [bare(1), Beat(1), Beat(wrong), Beat(1), DONE]}, error=ErrorCode.SELECTOR, ready=ready,
                  after_error=8)
        for name, wrong in (("none", 0), ("two", 5), ("all", (1 << n) - 1), ("neighbours", 3))
        for ready in ({}, {"out0": [0, 0, 0, 1]})
    ]
    for _, rtl in assert_model_equals_rtl(simulator, unit, cases, params=params):
        assert rtl.beats["out0"] == beats("S1 0 D")[:len(rtl.beats["out0"])]
