"""Bench of ``step_hw/link.py``: order, depth, one cycle of latency, full throughput, no path through."""

from functools import cache
from random import Random

import pytest

from rtl_tests.harness import (
    Case,
    Coverage,
    assert_same_on_both,
    bench_unit,
    bernoulli,
    bursts,
    corner_streams,
    never,
    random_stream,
    withhold,
)
from rtl_tests.shape_bench import LAYOUT, Trial, bench, element, pressure_bins, words
from step_hw.link import LinkFIFO

DEPTHS = (2, 3, 11)
# Of registers, a power of two or not, and a memory.
BINS = [
    "empty stream", "bare stop", "back to back streams", "in0 blocked", "out0 blocked", "out0 starved",
    "read and write in one cycle", "read from full", "read to empty",
]
LONG = words("1 2 3 4 5 6 7 8 9 10 11 12 S1 D")


@cache
def trials() -> tuple[Trial, ...]:
    rng = Random("link")
    made = [Trial("timing", {"in0": LONG}, {"out0": LONG}, directed=True)]
    for name, stream in corner_streams(2, lambda: element(rng)).items():
        made.append(Trial(name, {"in0": stream}, {"out0": stream}))
    for i in range(20):
        runs = [beat for _ in range(rng.randint(1, 3)) for beat in
                random_stream(rng, rng.randint(0, 3), lambda: element(rng), 3)]
        made.append(Trial(f"random {i}", {"in0": runs}, {"out0": runs}))
    return tuple(made)


@cache
def results(simulator: str, depth: int):
    coverage = Coverage("link", BINS)
    found = bench(simulator, LinkFIFO(LAYOUT, depth), trials(), coverage)
    for result in found:
        fill, writes, reads = 0, set(result.stamps["in0"]), set(result.stamps["out0"])
        for cycle in range(result.cycles):
            if cycle in reads:
                coverage.hit_if_declared(
                    (["read and write in one cycle"] if cycle in writes else [])
                    + (["read from full"] if fill == depth else [])
                    + (["read to empty"] if fill == 1 and cycle not in writes else []))
            fill += (cycle in writes) - (cycle in reads)
            assert 0 <= fill <= depth, f"{result.name}: {fill} beats in a link of {depth} in cycle {cycle}"
    coverage.check()
    return found


@pytest.mark.parametrize("depth", DEPTHS)
def test_order_and_depth(simulator, depth):
    results(simulator, depth)


@pytest.mark.parametrize("depth", DEPTHS)
def test_same_cycles_on_both(both_simulators, depth):
    assert_same_on_both(*(results(simulator, depth) for simulator in both_simulators))


@pytest.mark.parametrize("depth", DEPTHS)
def test_one_cycle_of_latency_and_full_throughput(simulator, depth):
    [result] = [result for result in results(simulator, depth) if result.name == "timing/0"]
    n = len(LONG)
    assert result.stamps["in0"] == list(range(n))
    assert result.stamps["out0"] == list(range(1, n + 1))


@pytest.mark.parametrize("depth", DEPTHS)
def test_holds_depth_beats_and_ready_comes_from_a_register(simulator, depth):
    cases = [
        Case("blocked for good", {"in0": LONG}, {"out0": []}, sink=never(), quiet=30),
        Case("blocked until 20", {"in0": LONG}, {"out0": LONG}, sink=withhold(20)),
    ]
    blocked, released = bench_unit(simulator, LinkFIFO(LAYOUT, depth), cases, check=False)
    assert blocked.stamps["in0"] == list(range(depth))
    assert blocked.state == depth
    assert released.problem is None
    assert released.stamps["out0"][0] == 20
    # A full link that is read in cycle 20 says ready in cycle 21, not before.
    assert released.stamps["in0"][depth] == 21
    assert pressure_bins(released) >= {"in0 blocked", "out0 blocked"}


def test_pressure_from_both_sides(simulator):
    cases = [Case(f"both {k}", {"in0": LONG * 3}, {"out0": LONG * 3}, drive=bernoulli(0.5), sink=bursts(2, 6))
             for k in range(4)]
    bench_unit(simulator, LinkFIFO(LAYOUT), cases)


def test_depth_is_checked():
    with pytest.raises(ValueError, match="depth of at least 2 for full throughput, not 1"):
        LinkFIFO(LAYOUT, 1)
