"""Streamify, with the bufferize and scratchpad that it needs: tokens as the interpreter's, cycles as the model's."""

import math
from random import Random

import pytest

from rtl_tests.harness import DONE, Beat, Coverage, bare, beats
from rtl_tests.memory_tile import (
    LAYOUT,
    MemoryTile,
    expected_passes,
    modelled_peak,
    no_view,
    ragged_buffers,
    random_buffers,
    ref_stream,
)
from rtl_tests.model_bench import ModelCase, assert_model_equals_rtl, pressed
from step_hw.unit import ErrorCode
from step_hw.units.scratchpad import ScratchpadShape
from step_lang.dims import ragged
from step_lang.timing import unit_timing

pytestmark = pytest.mark.long

SHAPES = {
    "small pages": ScratchpadShape(8, 2, 2, LAYOUT),
    "three pages": ScratchpadShape(12, 4, 3, LAYOUT),
    "one reference": ScratchpadShape(4, 1, 1, LAYOUT),
    "one page": ScratchpadShape(4, 4, 2, LAYOUT),
}

BINS = (
    "worked example", "empty stream", "streams back to back", "empty buffer", "empty buffer of empty vectors",
    "single element", "page exactly full", "page crossed", "scratchpad exactly full", "inner stops", "several passes",
    "all pages in use", "all references in use",
)
REF_BINS = ("reference ends a use without a pass", "empty vector of references within a use", "each element its buffer")


def run(simulator, tile, cases):
    """Model and RTL, which must also have the same peak use."""
    outcomes = assert_model_equals_rtl(simulator, tile, cases, add_units=tile.add_units,
                                       agents="rtl_tests.memory_tile:usage_agent")
    for case, (model, rtl) in zip(cases, outcomes, strict=True):
        usage = rtl.notes[0]
        assert usage.peak == modelled_peak(tile, model), f"{case.name}: peak of RTL and model"
        assert usage.used <= usage.peak <= tile.shape.pages
    return outcomes


def registers(reader: int, cfg) -> dict[str, int]:
    """Registers of streamify ``reader``; no affine view unless ``cfg`` says so."""
    return {f"r{reader}_{name}": value for name, value in (no_view() | cfg).items()}


def lengths(rng: Random, shape: ScratchpadShape, rank: int, count: int) -> list[int]:
    """Outer lengths of buffers that fit: empty, full pages, the whole scratchpad, and any."""
    most = shape.frames // 9 if rank == 3 else shape.frames // 3 if rank == 2 else shape.frames
    choices = [0, 1, shape.page_frames, shape.page_frames + 1, most, rng.randint(0, most)]
    return [min(rng.choice(choices), most) for _ in range(count)]


def cover(coverage: Coverage, shape: ScratchpadShape, buffers) -> None:
    """Count what ``buffers`` contain, as far as it can occur in this shape."""
    found = {
        "empty stream": not buffers.lengths,
        "empty buffer": 0 in buffers.lengths,
        "single element": 1 in buffers.lengths,
        "page exactly full": shape.page_frames in buffers.lengths,
        "page crossed": max(buffers.lengths, default=0) > shape.page_frames,
        "scratchpad exactly full": shape.frames in buffers.lengths,
        "empty buffer of empty vectors": any(beat.empty and 0 < beat.stop < buffers.rank for beat in buffers.beats),
        "inner stops": any(not beat.empty and 0 < beat.stop < buffers.rank for beat in buffers.beats),
    }
    coverage.hit_if_declared(bin_ for bin_, there in found.items() if there)


def joined(parts):
    return [beat for part in parts for beat in part]


@pytest.mark.parametrize("shape", SHAPES.values(), ids=[name.replace(" ", "_") for name in SHAPES])
def test_repeat(simulator, shape):
    """The static form: random ragged buffers, one to three passes, with and without pressure, streams back to back."""
    coverage = Coverage(f"streamify repeat {shape.key}", [
        bin_ for bin_ in BINS
        if not (bin_ == "page crossed" and shape.pages == 1) and not (bin_ == "inner stops" and shape.frames < 6)])
    example = ModelCase("worked example", {"in0": beats("1 2 S1 3 S2 D")},
                        {"rank": 1, "uses": 1, **registers(0, {"n": 1, "c": 1, "repeat": 2})},
                        expected={"out0": beats("1 2 S1 1 2 S2 3 S1 3 S3 D")})
    coverage.hit("worked example")
    cases = [example]
    rng = Random(7)
    for i in range(24):
        rank = rng.choice([1, 1, 2, 3])
        cfg = {"n": rank, "c": 1, "repeat": rng.randint(1, 3)}
        outer = rng.randint(0, 2)
        streams = [random_buffers(rng, rank, lengths(rng, shape, rank, rng.randint(0, 5)), outer)
                   for _ in range(rng.randint(1, 2))]
        for buffers in streams:
            cover(coverage, shape, buffers)
        coverage.hit("streams back to back", len(streams) > 1)
        coverage.hit("several passes", cfg["repeat"] > 1)
        case = ModelCase(f"random {i}", {"in0": joined(b.beats for b in streams)},
                         {"rank": rank, "uses": 1, **registers(0, cfg)},
                         expected={"out0": joined(expected_passes(b, cfg) for b in streams)})
        cases += [case, pressed(ModelCase(f"pressed {i}", case.inputs, case.cfg, expected=case.expected), rng,
                                offer=rng.choice([0.5, 0.9]), take=rng.choice([0.3, 0.7]))]
    for _, rtl in run(simulator, MemoryTile(shape), cases):
        coverage.hit("all pages in use", rtl.notes[0].no_page)
        coverage.hit("all references in use", rtl.notes[0].no_reference)
    coverage.check()


@pytest.mark.parametrize("shape", [SHAPES["small pages"], SHAPES["three pages"]], ids=["small_pages", "three_pages"])
def test_reference(simulator, shape):
    """Passes by a reference stream of zero to two more dimensions, some of them empty."""
    coverage = Coverage(f"streamify reference {shape.key}", [
        bin_ for bin_ in (*BINS, *REF_BINS) if bin_ not in ("worked example", "streams back to back")])
    rng = Random(11)
    cases = []
    for i in range(40):
        rank = rng.choice([1, 1, 2, 3])
        cfg = {"n": rank, "c": rng.choice([0, 1, 1, 2])}
        buffers = random_buffers(rng, rank, lengths(rng, shape, rank, rng.randint(0, 5)), rng.randint(0, 2))
        ref = ref_stream(rng, buffers.stops, cfg["c"])
        cover(coverage, shape, buffers)
        empties = [beat.stop for beat in ref if beat.empty and not beat.done]
        coverage.hit("reference ends a use without a pass", any(stop >= cfg["c"] for stop in empties))
        coverage.hit("empty vector of references within a use", any(stop < cfg["c"] for stop in empties))
        coverage.hit("each element its buffer", cfg["c"] == 0 and len(ref) > 1)
        coverage.hit("several passes", sum(not beat.empty for beat in ref) > len(buffers.stops))
        case = ModelCase(f"random {i}", {"in0": buffers.beats, "in1": ref},
                         {"rank": rank, "uses": 1, **registers(0, cfg)},
                         expected={"out0": expected_passes(buffers, cfg, ref)})
        cases += [case, pressed(ModelCase(f"pressed {i}", case.inputs, case.cfg, expected=case.expected), rng,
                                offer=rng.choice([0.5, 0.9]), take=rng.choice([0.3, 0.7]))]
    for _, rtl in run(simulator, MemoryTile(shape, [True]), cases):
        coverage.hit("all pages in use", rtl.notes[0].no_page)
        coverage.hit("all references in use", rtl.notes[0].no_reference)
    coverage.check()


def test_views(simulator):
    """Affine views of static buffers: transposed, repeated, strided, of 1 to 4 dimensions; views that leave them."""
    shape = ScratchpadShape(32, 4, 2, LAYOUT)
    rng = Random(5)
    views = [  # buffer's dimensions, view's sizes and strides, outermost first
        ((3, 4), (4, 3), (1, 4)), ((12,), (12,), (1,)), ((8,), (2, 3, 8), (0, 0, 1)),
        ((2, 3, 4), (4, 2, 3), (1, 12, 4)),
        ((16,), (2, 2, 2, 2), (1, 2, 4, 8)), ((10,), (5,), (2,)), ((1,), (1,), (0,)),
        ((4, 2), (2, 2, 2, 1), (2, 1, 4, 3)), ((15,), (3, 4), (4, 2)),
    ]
    cases = []
    for i, (dims, sizes, strides) in enumerate(views):
        cfg = no_view() | {"n": len(sizes), "c": 1, "repeat": rng.randint(1, 2), "affine": 1}
        for k, (size, stride) in enumerate(zip(reversed(sizes), reversed(strides), strict=True)):
            cfg |= {f"count{k}": size, f"stride{k}": stride}
        total = 1
        for size in dims:
            total *= size
        stream = []
        stops = [1, 0, 2]
        for stop in stops:
            for at in range(total):
                level, period = 0, 1
                for k, size in enumerate(reversed(dims), start=1):
                    period *= size
                    level = k if (at + 1) % period == 0 else level
                level = level + stop if at == total - 1 else level
                stream.append(Beat(rng.getrandbits(16), rng.randint(1, 4), level))
        buffers = random_buffers(rng, len(dims), [], 2)
        buffers = type(buffers)([*stream, DONE], [total] * 3, stops, len(dims), 2)
        case = ModelCase(f"view {i}", {"in0": buffers.beats}, {"rank": len(dims), "uses": 1, **registers(0, cfg)},
                         expected={"out0": expected_passes(buffers, cfg, shape=dims)})
        cases += [case, pressed(ModelCase(f"pressed view {i}", case.inputs, case.cfg, expected=case.expected), rng)]
    reverse = no_view() | {"n": 1, "c": 0, "repeat": 1, "affine": 1, "count0": 2, "stride0": (1 << 24) - 1}
    beyond = no_view() | {"n": 1, "c": 1, "repeat": 1, "affine": 1, "count0": 4, "stride0": 1}
    for name, cfg in (("below the buffer", reverse), ("beyond the buffer", beyond)):
        cases.append(ModelCase(name, {"in0": beats("1 2 3 S1 D")}, {"rank": 1, "uses": 1, **registers(0, cfg)},
                               error=ErrorCode.ADDRESS_RANGE))
    # A fixed view of a buffer that turns out empty: a bare stop, not an error (found by a tester's random program).
    window = no_view() | {"n": 2, "c": 1, "repeat": 2, "affine": 1}
    window |= {"count0": 2, "stride0": 1, "count1": 2, "stride1": 0}
    cases.append(ModelCase("view of an empty buffer", {"in0": beats("S1 1 2 S1 S2 D")},
                           {"rank": 1, "uses": 1, **registers(0, window)},
                           expected={"out0": beats("S2 S3 1 2 S1 1 2 S2 1 2 S1 1 2 S3 S2 S4 D", rows=1)}))
    run(simulator, MemoryTile(shape), cases)


def test_open_views(simulator):
    """Views with an open loop over buffers of any length: columns of rows, windows, every second element; empty
    buffers; a start beyond the buffer."""
    shape = ScratchpadShape(32, 4, 3, LAYOUT)
    rng = Random(23)
    coverage = Coverage("open views", [
        "columns", "one row", "empty buffer", "open inside", "open outside", "uneven columns", "by reference",
        "pressed"])
    views = [  # static inner dimensions of the buffer, view's sizes (None: open) and strides, outermost first
        ((3,), (3, None), (1, 3)), ((4,), (4, None), (1, 4)), ((), (None,), (2,)), ((), (2, None), (0, 1)),
        ((2,), (None, 2), (2, 1)), ((2, 2), (2, None, 2), (2, 4, 1)), ((2,), (2, None, 1, 1), (1, 2, 0, 0)),
    ]
    cases = []
    for i in range(20):
        inner, sizes, strides = views[i % len(views)]
        row = math.prod(inner)
        heights = [rng.choice([0, 1, 2, 3, 32 // row, rng.randint(0, 32 // row)]) for _ in range(rng.randint(1, 5))]
        cfg = no_view() | {"n": len(sizes), "c": 1, "repeat": rng.randint(1, 2), "affine": 1}
        for k, (size, stride) in enumerate(zip(reversed(sizes), reversed(strides), strict=True)):
            cfg |= {f"count{k}": size or 0, f"stride{k}": stride}
        buffers = ragged_buffers(rng, inner, heights, rng.randint(0, 2))
        cases.append(ModelCase(f"view {i}", {"in0": buffers.beats},
                               {"rank": buffers.rank, "uses": 1, **registers(0, cfg)},
                               expected={"out0": expected_passes(buffers, cfg, shape=(ragged("l"), *inner))}))
        cases.append(pressed(ModelCase(f"pressed {i}", **{name: getattr(cases[-1], name) for name in (
            "inputs", "cfg", "expected")}), rng))
        coverage.hit("columns", sizes[-1] is None and len(sizes) > 1)
        coverage.hit("one row", 1 in heights)
        coverage.hit("empty buffer", 0 in heights)
        coverage.hit("open inside", sizes[-1] is None)
        coverage.hit("open outside", sizes[0] is None and len(sizes) > 1)
        coverage.hit("pressed")
    # Columns of unequal height: the last row is not full.
    odd = no_view() | {"n": 2, "c": 1, "repeat": 1, "affine": 1, "count0": 0, "stride0": 2, "count1": 2, "stride1": 1}
    cases.append(ModelCase("uneven", {"in0": beats("1 2 3 4 5 S1 D")}, {"rank": 1, "uses": 1, **registers(0, odd)},
                           expected={"out0": beats("1 3 5 S1 2 4 S3 D")}))
    coverage.hit("uneven columns")
    cases.append(ModelCase("column without a row", {"in0": beats("1 S1 D")},
                           {"rank": 1, "uses": 1, **registers(0, odd)}, error=ErrorCode.ADDRESS_RANGE))
    run(simulator, MemoryTile(shape), cases)

    cases = []
    for i in range(8):
        buffers = ragged_buffers(rng, (3,), [rng.randint(0, 5) for _ in range(4)], 1)
        cfg = no_view() | {"n": 2, "c": 1, "affine": 1, "count0": 0, "stride0": 3, "count1": 3, "stride1": 1}
        ref = ref_stream(rng, buffers.stops, 1)
        cases.append(ModelCase(f"by reference {i}", {"in0": buffers.beats, "in1": ref},
                               {"rank": 2, "uses": 1, **registers(0, cfg)},
                               expected={"out0": expected_passes(buffers, cfg, ref, shape=(ragged("l"), 3))}))
        coverage.hit("by reference")
    run(simulator, MemoryTile(shape, [True]), cases)
    coverage.check()


def test_several_readers(simulator):
    """Every reference to three streamifies, which take turns at the read port; the last to finish frees the buffer."""
    shape = ScratchpadShape(12, 2, 3, LAYOUT)
    rng = Random(3)
    cases = []
    for i in range(16):
        rank = rng.choice([1, 2])
        buffers = random_buffers(rng, rank, lengths(rng, shape, rank, rng.randint(0, 5)), rng.randint(0, 1))
        settings = [{"n": rank, "c": 1, "repeat": rng.randint(1, 3)}, {"n": rank, "c": rng.choice([0, 1, 2])},
                    {"n": rank, "c": 1, "repeat": 1}]
        ref = ref_stream(rng, buffers.stops, settings[1]["c"])
        cfg = {"rank": rank, "uses": 3}
        for k, chosen in enumerate(settings):
            cfg |= registers(k, chosen)
        expected = {f"out{k}": expected_passes(buffers, chosen, ref if k == 1 else None)
                    for k, chosen in enumerate(settings)}
        case = ModelCase(f"random {i}", {"in0": buffers.beats, "in1": ref}, cfg, expected=expected)
        cases += [case, pressed(ModelCase(f"pressed {i}", case.inputs, cfg, expected=expected), rng)]
    run(simulator, MemoryTile(shape, [False, True, False]), cases)


def test_turns_are_fair(simulator):
    """Two readers of one port get every second cycle each, and the port is never idle."""
    shape = ScratchpadShape(32, 4, 2, LAYOUT)
    stream = [Beat(i, 1, 1 if i == 15 else 0) for i in range(16)] + [DONE]
    cfg = {"rank": 1, "uses": 2}
    for k in range(2):
        cfg |= registers(k, {"n": 1, "c": 1, "repeat": 8})
    tile = MemoryTile(shape, [False, False])
    [(_, rtl)] = run(simulator, tile, [ModelCase("two readers", {"in0": stream}, cfg)])
    for k in range(2):
        gaps = {b - a for a, b in zip(rtl.pushes[f"out{k}"][:-1], rtl.pushes[f"out{k}"][1:-1], strict=False)}
        assert gaps == {2}, f"reader {k}: gaps {gaps}"


def test_routed_references(simulator):
    """Bare stops among the references, which only routing can bring; disagreement of buffers and reference."""
    shape = ScratchpadShape(8, 2, 2, LAYOUT)
    cfg = {"rank": 1, "uses": 1, **registers(0, {"n": 1, "c": 1})}
    stored = beats("1 2 S1 3 S1 D")  # references 0 and 1

    def case(name, ref, references, gives=None, error=0):
        late = [20] * len(references)  # when both buffers are complete
        expected = {} if gives is None else {"out0": gives}
        return ModelCase(name, {"in0": stored, "in1": ref, "in2": references}, cfg, {"in2": late}, expected=expected,
                         error=error)

    a, b = Beat(0, 1, 0), Beat(1, 1, 1)
    good = [
        case("bare among references", [Beat(7, 1, 1), bare(2), Beat(7, 1, 0), Beat(7, 1, 2), DONE],
             [a, bare(1), b, DONE], beats("1 2 S2 S3 3 S1 3 S3 D")),
        case("other order", [Beat(7, 1, 2), Beat(7, 1, 2), DONE], [b, Beat(0, 1, 1), DONE],
             beats("3 S3 1 2 S3 D")),
    ]
    bad = [
        case("stop differs", [Beat(7, 1, 2), DONE], [a, DONE], error=ErrorCode.MISALIGNED),
        case("element for a bare stop", [Beat(7, 1, 2), DONE], [bare(1), DONE], error=ErrorCode.MISALIGNED),
        case("buffers end first", [Beat(7, 1, 1), Beat(7, 1, 1), DONE], [a, DONE], error=ErrorCode.MISALIGNED),
        case("reference ends first", [Beat(7, 1, 1), DONE], [a, b, DONE], error=ErrorCode.MISALIGNED),
    ]
    deep = case("stop too high", [Beat(7, 1, 15), DONE], [Beat(0, 1, 14), DONE], error=ErrorCode.STOP_RANGE)
    run(simulator, MemoryTile(shape, [True], routed=True), [*good, *bad, deep])


def test_throughput_and_latency(simulator):
    """One element a cycle sustained with double buffering, in passes and between buffers; latency as stated."""
    shape = ScratchpadShape(64, 8, 3, LAYOUT)
    stream = [Beat(i & 0xFFFF, 4, (1 if i % 32 == 31 else 0)) for i in range(32 * 30)] + [DONE]
    once = ModelCase("once", {"in0": stream}, {"rank": 1, "uses": 1, **registers(0, {"n": 1, "c": 1, "repeat": 1})})
    often = ModelCase("often", {"in0": [*stream[:32 * 8], DONE]},
                      {"rank": 1, "uses": 1, **registers(0, {"n": 1, "c": 1, "repeat": 4})})
    single = ModelCase("single", {"in0": beats("1 S1 D")}, once.cfg)
    outcomes = run(simulator, MemoryTile(shape), [once, often, single])
    for case, (_, rtl), least in zip((once, often), outcomes, (0.95, 1.0), strict=False):
        pushes = rtl.pushes["out0"][:-1]
        rate = (len(pushes) - 1) / (pushes[-1] - pushes[0])
        print(f"{case.name}: {rate:.3f} elements a cycle")
        assert rate >= least, f"{case.name}: {rate:.3f} elements a cycle"
    # From the input link, bufferize, the reference's link and streamify to the link behind.
    _, rtl = outcomes[2]
    stated = 1 + unit_timing("bufferize").latency + 1 + unit_timing("streamify").latency
    assert rtl.pushes["out0"][0] - rtl.stamps["in0"][0] == stated


def test_same_cycles(both_simulators):
    """Icarus and Verilator agree in every beat and cycle (each also equals the model)."""
    shape = SHAPES["three pages"]
    rng = Random(2)
    buffers = random_buffers(rng, 2, [2, 0, 4, 1, 3], 1)
    cfg = {"n": 2, "c": 1, "repeat": 2}
    case = pressed(ModelCase("both", {"in0": buffers.beats}, {"rank": 2, "uses": 1, **registers(0, cfg)},
                             expected={"out0": expected_passes(buffers, cfg)}), rng)
    [(_, one)], [(_, other)] = (run(s, MemoryTile(shape), [case]) for s in both_simulators)
    assert (one.beats, one.stamps, one.pushes, one.notes) == (other.beats, other.stamps, other.pushes, other.notes)
