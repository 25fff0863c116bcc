"""Bench of ``step_hw/units/flat_map.py`` and its model: the address functions, against the interpreter."""

from functools import cache, partial
from itertools import pairwise
from random import Random

import pytest

from rtl_tests.compute_bench import split_streams
from rtl_tests.harness import (
    DONE,
    STREAM_BINS,
    Beat,
    Coverage,
    assert_same_on_both,
    bare,
    beats,
    corner_streams,
    from_beats,
    random_stream,
    to_beats,
)
from rtl_tests.model_bench import ModelCase, assert_model_equals_rtl
from rtl_tests.shape_bench import Trial, bench, compare_with_model
from step_hw.beat import BeatLayout
from step_hw.hbm.affine import LOOPS
from step_hw.unit import ErrorCode
from step_hw.units.flat_map import FlatMap
from step_lang import Program, fn, ops, ragged
from step_lang.errors import UnknownFunction, ViewOutOfRange
from step_lang.interpreter import Context
from step_lang.numerics import Numerics
from step_lang.timing import unit_timing
from step_lang.types import Tuple, scalar, u32

U32 = scalar(u32)
TYPES = {"affine_addresses": U32, "counter": U32, "address_range": Tuple((U32, U32))}
KINDS = list(TYPES)
MOST = (1 << 32) - 1
BINS = [
    *STREAM_BINS, "in0 blocked", "out0 blocked", "out0 starved", "rank 0", "rank > 0", "several addresses",
]
OWN_BINS = {
    "affine_addresses": ["rank of a block > 0", "stride below 0", "scale below 0", "largest address", "address 0"],
    "counter": ["nothing of an element", "nothing, with a stop", "stop of one before", "all of a stream nothing"],
    "address_range": ["nothing of an element", "nothing, with a stop", "stop of one before", "all of a stream nothing",
                      "stride below 0", "largest address", "address 0"],
}


def unit(kind: str) -> FlatMap:
    return FlatMap(function(kind), BeatLayout(64 if kind == "address_range" else 32))


def function(kind: str, **params):
    return fn.affine_addresses((1,)) if kind == "affine_addresses" and not params else fn.get(kind, **params)


def registers(made) -> dict[str, int]:
    """Registers of a function."""
    if made.name == "address_range":
        return {"stride": made.params["stride"] & MOST}
    if made.name == "counter":
        return {}
    shape, stride = made.params["shape"], made.params["stride"]
    found = {"base": made.params["base"] & MOST, "scale": made.params["scale"] & MOST, "dims": len(shape)}
    for k in range(LOOPS):
        found[f"count{k}"] = shape[-1 - k] if k < len(shape) else 1
        found[f"stride{k}"] = stride[-1 - k] & MOST if k < len(shape) else 0
    return found


def interpreted(made, stream, rank):
    """Output beats of the interpreter for the runs of ``stream``."""
    type_, found = TYPES[made.name], []
    for run in split_streams(stream):
        with Program("bench"):
            out = ops.flat_map(made, ops.input_stream("x", type_, tuple(ragged(f"d{k}") for k in range(rank + 1))))
        (result,) = out.producer.interpret(Context(Numerics(), {}, {}, {}), [from_beats(run, type_, rank)])
        found += to_beats(result, U32)
    return found


def trial(name, made, stream, rank, directed=False) -> Trial:
    return Trial(name, {"in0": stream}, {"out0": interpreted(made, stream, rank)}, registers(made), directed=directed)


def _random_function(kind: str, rng: Random):
    if kind == "counter":
        return fn.counter()
    if kind == "address_range":
        return fn.address_range(stride=rng.choice([1, 1, 3, 0, -2, 1000]))
    shape = tuple(rng.randint(1, 3) for _ in range(rng.randint(1, 4)))
    stride = [rng.choice([1, 4, 0, -7, 1 << 20]) for _ in shape]
    low = sum(min(0, (n - 1) * k) for n, k in zip(shape, stride, strict=True))
    scale = rng.choice([1, 5, 0, -3])
    return fn.affine_addresses(shape, stride, scale=scale, base=rng.choice([0, 10]) - low + (30 if scale < 0 else 0))


def _element(kind: str, rng: Random, made) -> Beat:
    if kind == "affine_addresses":
        return Beat(rng.randrange(10))
    count = rng.choice([0, 0, 1, 1, 2, 3, 5])
    if kind == "counter":
        return Beat(count)
    reach = max(0, -made.params["stride"]) * 4
    return Beat(reach + rng.choice([0, 3, rng.randrange(1 << 31)]) | count << 32)


def _pair(start: int, count: int) -> int:
    return start | count << 32


DIRECTED = {
    "affine_addresses": [
        ("block", fn.affine_addresses((2, 3), stride=(10, 1), scale=100, base=7), "1 2 S1 S1 3 S2 D", 2),
        ("one by one", fn.affine_addresses((1,)), "1 2 3 4 5 6 7 8 S1 9 S1 D", 1),
        ("six dimensions", fn.affine_addresses((2, 1, 2, 1, 1, 2)), "1 S1 D", 1),
    ],
    "counter": [
        ("counts", fn.counter(), "2 1 S1 3 S1 D", 1),
        ("nothing between", fn.counter(), "2 0 1 0 0 S1 0 S1 0 1 S1 D", 1),
        ("stop of one before", fn.counter(), "2 0 S2 0 0 S1 S1 1 0 S3 D", 3),
        ("bare stops", fn.counter(), "S1 S1 1 S2 S1 0 S2 D", 2),
        ("all nothing", fn.counter(), "0 0 0 D", 0),
    ],
}


@cache
def trials(kind: str) -> tuple[Trial, ...]:
    rng = Random(kind)
    made = [trial(name, function_, beats(text), rank, directed=True)
            for name, function_, text, rank in DIRECTED.get(kind, [])]
    if kind == "address_range":
        pairs = lambda *counts: [Beat(_pair(s, n)) for s, n in counts]  # noqa: E731
        last = lambda beat, stop: beat._replace(stop=stop)  # noqa: E731
        one, none, more = pairs((5, 1), (9, 0), (7, 3))
        stream = [more, one, none, last(none, 1), bare(1), none, last(more, 2), one, last(none, 1), DONE]
        made += [trial(f"ranges by {stride}", fn.address_range(stride=stride), stream, 2, True) for stride in (1, -3)]
        made.append(trial("largest address", fn.address_range(stride=-(MOST // 2)),
                          [Beat(_pair(MOST, 3)), Beat(_pair(MOST, 1)), Beat(_pair(0, 1)), DONE], 0))
        made.append(trial("all nothing", fn.address_range(), [none, none, DONE], 0))
    if kind == "affine_addresses":
        made.append(trial("largest address", fn.affine_addresses((2,), stride=(-(MOST // 2),), scale=3, base=0),
                          [Beat(MOST // 3), DONE], 0))
    for rank in (0, 1, 2):
        chosen = _random_function(kind, rng)
        for name, stream in corner_streams(rank, partial(_element, kind, rng, chosen)).items():
            made.append(trial(f"{name}, rank {rank}", chosen, stream, rank))
    for n in range(40):
        rank, chosen = rng.randint(0, 3), _random_function(kind, rng)
        runs = [beat for _ in range(rng.randint(1, 3))
                for beat in random_stream(rng, rank, partial(_element, kind, rng, chosen), 4)]
        made.append(trial(f"random {n}", chosen, runs, rank))
    return tuple(made)


def _cover(coverage: Coverage, kind: str, each: Trial) -> None:
    stream, out = each.inputs["in0"], each.expected["out0"]
    counts = [beat.data >> 32 if kind == "address_range" else beat.data for beat in stream if not beat.empty]
    found = {"rank > 0" if any(beat.stop for beat in stream) else "rank 0"}
    found |= {"largest address" for beat in out if beat.data == MOST}
    found |= {"address 0" for beat in out if not beat.empty and beat.data == 0}
    found |= {"several addresses" for _ in [0] if len(out) > len(stream)}
    if kind != "affine_addresses":
        nothing = [k for k, beat in enumerate(stream) if not beat.empty
                   and (beat.data >> 32 if kind == "address_range" else beat.data) == 0]
        found |= {"nothing of an element" for _ in nothing}
        found |= {"nothing, with a stop" for k in nothing if stream[k].stop}
        found |= {"all of a stream nothing" for _ in [0] if counts and not any(counts)}
        found |= {"stop of one before" for k in nothing if stream[k].stop and k and k - 1 not in nothing
                  and not stream[k - 1].empty and not stream[k - 1].stop}
    found |= {"stride below 0" for name, word in each.cfg.items() if name.startswith("stride") and word >> 31}
    found |= {"scale below 0" for _ in [0] if each.cfg.get("scale", 0) >> 31}
    found |= {"rank of a block > 0" for _ in [0] if each.cfg.get("dims", 1) > 1}
    coverage.hit_if_declared(found)


@cache
def results(kind: str, simulator: str):
    coverage = Coverage(f"flat_map {kind}", BINS + OWN_BINS[kind])
    found = bench(simulator, unit(kind), trials(kind), coverage)
    for each in trials(kind):
        _cover(coverage, kind, each)
    coverage.check()
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_streams_against_the_interpreter(simulator, kind):
    results(kind, simulator)


@pytest.mark.parametrize("kind", KINDS)
def test_same_cycles_on_both(both_simulators, kind):
    assert_same_on_both(*(results(kind, simulator) for simulator in both_simulators))


@pytest.mark.parametrize("kind", KINDS)
def test_model_has_the_same_cycles(simulator, kind):
    compare_with_model(simulator, unit(kind), trials(kind), {"function": function(kind)})


@pytest.mark.parametrize("kind", KINDS)
def test_one_address_a_cycle(simulator, kind):
    """Latency as stated, and no cycle lost from one element to the next: 200 addresses in 200 cycles."""
    made = fn.affine_addresses((2, 2), scale=4) if kind == "affine_addresses" else function(kind)
    stream = [Beat(_pair(8 * k, 4) if kind == "address_range" else 4 if kind == "counter" else k) for k in range(50)]
    case = ModelCase("steady", {"in0": [*stream, DONE]}, registers(made), runs=1,
                     expected={"out0": interpreted(made, [*stream, DONE], 0)})
    ((_, rtl),) = assert_model_equals_rtl(simulator, unit(kind), [case], params={"function": made})
    given = rtl.pushes["out0"][:-1]
    assert {b - a for a, b in pairwise(given)} == {unit_timing("flat_map").interval} and len(given) == 200
    # An address after which nothing else waits is offered `latency` cycles after its step, the first in the link's.
    assert given[0] - (rtl.stamps["in0"][0] + 1) == unit_timing("flat_map").latency
    assert len(given) / (given[-1] - given[0] + 1) >= 0.95


@pytest.mark.parametrize("kind", KINDS)
def test_errors(simulator, kind):
    """Addresses that are no u32, in the cycle in which they would be made; a stop that has no level left."""
    range_, sink = ErrorCode.ADDRESS_RANGE, {"out0": [0, 0, 1]}
    if kind == "affine_addresses":
        asked = [
            ("below 0", fn.affine_addresses((3,), stride=(-1,), base=1), [Beat(1), Beat(0), DONE], range_),
            ("beyond a u32", fn.affine_addresses((2, 2), scale=1 << 30), [Beat(3), Beat(4), DONE], range_),
            ("farthest", fn.affine_addresses((1,), scale=(1 << 31) - 1), [Beat(0), Beat(MOST), DONE], range_),
            ("farthest below", fn.affine_addresses((1,), scale=-(1 << 31)), [Beat(0), Beat(MOST), DONE], range_),
            ("no level", fn.affine_addresses((2, 2)), [Beat(1, 1, 14), Beat(1, 1, 15), DONE], ErrorCode.STOP_RANGE),
            ("no level for a bare one", fn.affine_addresses((2, 2)), [bare(15), DONE], ErrorCode.STOP_RANGE),
        ]
    elif kind == "address_range":
        asked = [
            ("below 0", fn.address_range(stride=-2), [Beat(_pair(4, 3)), Beat(_pair(3, 3)), DONE], range_),
            ("beyond a u32", fn.address_range(stride=1), [Beat(_pair(MOST, 1)), Beat(_pair(MOST, 2)), DONE], range_),
            ("far beyond", fn.address_range(stride=(1 << 31) - 1), [Beat(_pair(1 << 31, 9)), DONE], range_),
        ]
    else:
        return  # a counter has no address that is none
    cases = [ModelCase(f"{name} {n}", {"in0": stream}, registers(made), error=error, ready=ready)
             for name, made, stream, error in asked for n, ready in enumerate(({}, sink))]
    assert_model_equals_rtl(simulator, unit(kind), cases, params={"function": function(kind)})
    for _, made, stream, error in asked:
        if error == range_:
            with pytest.raises(ViewOutOfRange):
                interpreted(made, stream, 0)


def test_functions_without_hardware_are_named():
    with pytest.raises(UnknownFunction, match="'split_rows' in flat_map vs those with hardware: address_range, affine"):
        FlatMap(fn.split_rows(2), BeatLayout(32))
    with pytest.raises(ValueError, match="an element of counter has 32 bits, not 64"):
        FlatMap(fn.counter(), BeatLayout(64))
