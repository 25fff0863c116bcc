"""References that a partition hands on: each output its own readers, copies, chunks handed to nobody; fragmentation."""

from dataclasses import replace
from random import Random

import pytest

from rtl_tests.harness import DONE, Beat, Coverage, beats
from rtl_tests.memory_tile import LAYOUT, RoutedTile, expected_passes, modelled_peak, no_view, random_buffers, routed
from rtl_tests.model_bench import ModelCase, assert_model_equals_rtl, pressed
from rtl_tests.routing_bench import selector_beat
from step_hw.unit import ErrorCode
from step_hw.units.bufferize import Bufferize
from step_hw.units.expand import Expand
from step_hw.units.partition import Partition
from step_hw.units.scratchpad import Scratchpad, ScratchpadShape

pytestmark = pytest.mark.long

BRANCHES = (1, 2, 1)
BINS = [
    "no output", "one output", "several outputs", "all outputs", "empty buffer", "chunk of references",
    "all pages in use", "all references in use", "fragmented", "freed in another order", "nine tenths full", "dropped",
]


def run(simulator, tile, cases):
    """Model and RTL; the peak of both, which in RTL is also that of the Python reference in every cycle."""
    outcomes = assert_model_equals_rtl(simulator, tile, cases, add_units=tile.add_units,
                                       agents="rtl_tests.memory_tile:usage_agent")
    for case, (model, rtl) in zip(cases, outcomes, strict=True):
        assert rtl.notes[0].peak == modelled_peak(tile, model), f"{case.name}: peak of RTL and model"
    return [rtl.notes[0] for _, rtl in outcomes]


def registers(tile, rank: int, repeats, chunk: int = 0) -> dict[str, int]:
    cfg = {"rank": rank, "uses": 1, "chunk": chunk}
    for j, repeat in enumerate(repeats):
        cfg |= {f"r{j}_{name}": value for name, value in (no_view() | {"n": rank, "c": 1, "repeat": repeat}).items()}
    return cfg


def routed_case(name, tile, rng, lengths, rank=1, chunk=0, choose=None, repeats=None) -> ModelCase:
    """Buffers of ``lengths``, selectors at random (``choose``: how many outputs), and what the interpreter makes of
    them."""
    n = len(tile.branches)
    buffers = random_buffers(rng, rank, lengths, chunk + rng.randint(0, 1))
    repeats = repeats or [rng.randint(1, 3) for _ in range(tile.readers)]
    selectors, chosen, bits = [], [], None
    for stop in buffers.stops:
        bits = rng.sample(range(n), choose(rng) if choose else rng.randint(0, n)) if bits is None else bits
        chosen.append(bits)
        if stop >= chunk:
            selectors.append(selector_beat(bits, stop - chunk))
            bits = None
    expected, j = {}, 0
    for k, branches in enumerate(tile.branches):
        part = routed(buffers, [k in bits for bits in chosen], chunk)
        for _ in range(branches):
            expected[f"out{j}"] = expected_passes(part, {"n": rank, "c": 1, "repeat": repeats[j]})
            j += 1
    return ModelCase(name, {"in0": buffers.beats, "in1": [*selectors, DONE]}, registers(tile, rank, repeats, chunk),
                     expected=expected)


def test_random(simulator):
    """Any number of outputs for each reference, or for each chunk of references, with and without pressure."""
    coverage = Coverage("routed buffers", BINS)
    tile = RoutedTile(ScratchpadShape(24, 2, 3, LAYOUT), BRANCHES)
    rng = Random(31)
    cases = []
    for i in range(16):
        rank, chunk = rng.choice([1, 2]), i % 3 // 2
        lengths = [rng.choice([0, 1, 2, 3, 5, 8]) for _ in range(rng.randint(1, 7))]
        case = routed_case(f"random {i}", tile, rng, lengths, rank, chunk)
        for beat in case.inputs["in1"][:-1]:
            count = beat.data.bit_count()
            coverage.hit({0: "no output", 1: "one output", 2: "several outputs", 3: "all outputs"}[count])
        coverage.hit("empty buffer", 0 in lengths)
        coverage.hit("chunk of references", chunk == 1)
        cases += [case, pressed(ModelCase(f"pressed {i}", case.inputs, case.cfg, expected=case.expected), rng,
                                offer=0.9, take=rng.choice([0.3, 0.7]))]
    _cover(coverage, run(simulator, tile, cases))
    coverage.check()


def _cover(coverage: Coverage, usages) -> None:
    for usage in usages:
        coverage.hit("all pages in use", usage.no_page)
        coverage.hit("all references in use", usage.no_reference)
        coverage.hit("fragmented", usage.fragmented > 0)
        coverage.hit("freed in another order", usage.overtaken > 0)
        coverage.hit("nine tenths full", usage.crowded > 0)
        coverage.hit("dropped", usage.dropped > 0)
        assert usage.unfreed == 0, "buffers whose uses are not over"


def test_fragmentation(simulator):
    """An almost full scratchpad: random sizes, several readers of very different pace, hence lifetimes."""
    tile = RoutedTile(ScratchpadShape(64, 2, 7, LAYOUT), BRANCHES)
    rng = Random(37)
    sizes = [1, 2, 3, 7, 11, 16, 21, 30]
    case = routed_case("stress", tile, rng, [rng.choice(sizes) for _ in range(90)],
                       choose=lambda rng: rng.choice([0, 1, 1, 1, 2]), repeats=[1, 3, 1, 2])
    case = pressed(case, rng, offer=1.0, take=0.9)
    case.ready = {"out0": [1, 0, 0], "out1": [1], "out2": [1, 0], "out3": [0, 0, 1, 0, 1]}
    [usage] = run(simulator, tile, [case])
    print(f"{usage.buffers} buffers, peak {usage.peak} of {tile.shape.pages} pages, {usage.crowded} cycles with a "
          f"tenth free or less, {usage.fragmented} pages out of order, {usage.overtaken} buffers freed before older")
    assert usage.unfreed == 0 and usage.buffers == 90 and usage.peak == tile.shape.pages
    assert usage.crowded > 300 and usage.fragmented > 100 and usage.overtaken > 20 and usage.dropped > 5


def test_throughput(simulator):
    """Buffers that go to alternating readers leave at the rate of the one read port."""
    tile = RoutedTile(ScratchpadShape(64, 8, 4, LAYOUT), (1, 1))
    stream = [Beat(i & 0xFFFF, 4, int(i % 16 == 15)) for i in range(16 * 40)] + [DONE]
    selectors = [selector_beat([k % 2]) for k in range(40)] + [DONE]
    cfg = registers(tile, 1, [1, 1])
    outcomes = assert_model_equals_rtl(simulator, tile, [ModelCase("turns", {"in0": stream, "in1": selectors}, cfg)],
                                       add_units=tile.add_units)
    [(_, rtl)] = outcomes
    pushes = sorted(rtl.pushes["out0"][:-1] + rtl.pushes["out1"][:-1])
    rate = (len(pushes) - 1) / (pushes[-1] - pushes[0])
    print(f"routed buffers: {rate:.3f} elements a cycle")
    assert rate >= 0.95


def test_an_output_without_readers(simulator):
    """References that nobody reads at an output, in some cases at no output, wait there for longer than their buffers
    live, and go on."""
    tile = RoutedTile(ScratchpadShape(8, 2, 2, LAYOUT), (1, 0))
    buffers = ["1 S1", "2 3 S1", "4 S1", "5 S1", "6 7 S1"]
    cases = []
    for name, chosen in {"both": [[0, 1]] * 5, "nobody": [[1]] * 5, "in turn": [[1], [0, 1], [0], [1], [0, 1]]}.items():
        read = [buffer for buffer, bits in zip(buffers, chosen, strict=True) if 0 in bits]
        inputs = {"in0": beats(" ".join([*buffers, "D"])), "in1": [*map(selector_beat, chosen), DONE]}
        cases += [ModelCase(f"{name}, ready after {waits}", inputs, registers(tile, 1, [1]) | {"r0_c": 0},
                            ready={"out0": [1], "out1": [0] * waits + [1]},
                            expected={"out0": beats(" ".join([*read, "D"]))}) for waits in (0, 9)]
    for usage in run(simulator, tile, cases):
        assert usage.unfreed == 0 and usage.buffers == 5


def test_use_after_free(simulator):
    """Too few uses counted: a reference that arrives after its buffer was freed, at the partition or at a reader, while
    its number is free, being filled, or another buffer's."""
    tile = RoutedTile(ScratchpadShape(8, 2, 2, LAYOUT), (1, 2))
    stream = beats("1 S1 2 S1 3 S1 4 S1 5 S1 D")

    def case(name, selectors, uses=1, ready=(1,)):
        made = [*selectors, DONE]
        return ModelCase(name, {"in0": stream, "in1": made}, registers(tile, 1, [1, 1, 1]) | {"uses": uses},
                         ready={"out0": [1], "out1": [1], "out2": list(ready)}, error=ErrorCode.FREED)

    cases = [
        case("at the partition", [selector_beat([0])] * 5, uses=0),
    ]
    assert_model_equals_rtl(simulator, tile, cases, add_units=tile.add_units)
    # A partition that counts one use for two readers: the slower of them comes too late.
    short = RoutedTile(ScratchpadShape(8, 2, 2, LAYOUT), (1, 2))
    short.partition = Partition(short.shape.reference_layout, 2, 2, short.shape, (1, 1))
    slow = [0] * 12 + [1]
    made = [case("at a reader", [selector_beat([1])] * 5, ready=slow)]

    def add_units(graph, inputs, outputs, cfg):
        short.add_units(graph, inputs, outputs, cfg)
        graph.units[-1].params["uses"] = (1, 1)

    assert_model_equals_rtl(simulator, short, made, add_units=add_units)


def test_parameters_are_checked():
    shape = ScratchpadShape(8, 2, 2, LAYOUT)
    with pytest.raises(ValueError, match=r"2 outputs share fewer than 256 uses of a reference, not \(1,\)"):
        Partition(shape.reference_layout, 2, 2, shape, (1,))
    with pytest.raises(ValueError, match=r"not \(200, 100\)"):
        Partition(shape.reference_layout, 2, 2, shape, (200, 100))
    with pytest.raises(ValueError, match="a reference has fewer than 255 uses, not 255"):
        Expand(shape.reference_layout, LAYOUT, shape, 255)
    both = replace(shape, owners=2)
    with pytest.raises(ValueError, match="a scratchpad does not know of others: give it its own shape"):
        Scratchpad(both)
    with pytest.raises(ValueError, match="the scratchpad is one of 2, not number 2"):
        Bufferize(both, 2)
