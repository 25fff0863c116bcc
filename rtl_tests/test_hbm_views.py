"""Random affine views of load, input and store units that share a memory, simple and banked.

RTL gives the values and tokens of the language's interpreter and the cycles of the model; traffic is exact.
"""

from functools import cache
from random import Random

import numpy as np
import pytest

from rtl_tests.harness import Beat, Coverage, beats, from_beats, random_stream, stream_bins, to_beats
from rtl_tests.memory_rig import MemoryRig, Port, view
from rtl_tests.model_bench import ModelCase, assert_model_equals_rtl, delay, pressed
from step_hw.beat import BeatLayout
from step_hw.hbm.image import MemoryImage
from step_hw.unit import ErrorCode
from step_lang import Program, Tile, TokenStream, interpret, ops, ragged, scalar, u32
from step_lang.memory_config import MemoryConfig
from step_lang.types import bf16
from step_lang.unitgraph import TensorPlacement

pytestmark = pytest.mark.long

T = 4
GRID = (5, 6)
TILES = GRID[0] * GRID[1]
TILE = BeatLayout(16 * T * T, T)
BYTES = 2 * T * T
SCALARS = 24
SIMPLE = MemoryConfig(channels=4, burst_bytes=16, capacity_bytes=1 << 15)
MEMORIES = {
    "simple": SIMPLE,
    "slow start": MemoryConfig(channels=2, burst_bytes=64, capacity_bytes=1 << 15, interval=3, latency=9, startup=7),
    "banked": MemoryConfig(
        model="banked",
        channels=2,
        burst_bytes=8,  # an element takes two on each channel
        bl=1,
        tccd=1,
        capacity_bytes=1 << 15,
        banks=4,
        row_bytes=64,
        queue=4,
        trcd=4,
        trp=5,
        tras=11,
        trtp=3,
        twr=5,
        twtr=3,
        trrd=3,
        tfaw=14,
        trfc=30,
        trefi=150,
        cl=5,
        cwl=3,
    ),
}
TOKENS = beats("1 2 S1 S1 3 S2 4 S1 S2 5 6 7 S1 D")
START = len(TOKENS) + 1
"""Cycle in which loads without reference begin: after the token memory has been written and the start pulse."""


def _rig(memory):
    return MemoryRig(
        memory,
        [Port("load", TILE, BYTES), Port("load", TILE, BYTES, ref=True, window=8),
         Port("input", BeatLayout(32), 4, window=8)],
        [Port("store", TILE, BYTES)],
    )


@cache
def _contents():
    rng = np.random.default_rng(7)
    tensor = rng.integers(0, 1 << 16, (GRID[0] * T, GRID[1] * T), dtype=np.uint16).view(bf16.numpy)
    return tensor, np.arange(100, 100 + SCALARS, dtype=np.uint32).reshape(1, SCALARS)


def _random_view(rng: Random, least=0):
    """A view inside the grid: sizes and strides (some negative is not possible without an offset), outermost first."""
    while True:
        shape = tuple(rng.randint(1, 4) for _ in range(rng.randint(least, 4)))
        stride = tuple(rng.choice([0, 1, 2, 3, GRID[1], GRID[1] + 1]) for _ in shape)
        if sum((n - 1) * k for n, k in zip(shape, stride, strict=True)) < TILES:
            return shape, stride


def _loaded(shape, stride, ref=None, rank=0):
    """Beats that a load gives by the interpreter; ``ref``: beats of the reference stream."""
    with Program("load") as program:
        source, target = program.tensor("a", (GRID[0] * T, GRID[1] * T), bf16), program.tensor("b", (T, 4096 * T), bf16)
        inputs = {}
        stream = None
        if ref is not None:
            stream = ops.input_stream("ref", scalar(u32), tuple(ragged(f"d{i}") for i in range(rank + 1)))
            inputs["ref"] = from_beats(ref, scalar(u32), rank)
        out = ops.linear_offchip_load(source, (T, T), ref=stream, shape=shape, stride=stride)
        ops.linear_offchip_store(out, target)
    tokens: TokenStream = interpret(program, {"a": _contents()[0]}, inputs).stream(out)
    return to_beats(tokens, Tile(T, T, bf16))


@cache
def _cases(name):
    memory = MEMORIES[name]
    rig, rng = _rig(memory), Random(name)
    tensor, scalars = _contents()
    image = MemoryImage(memory)
    a = TensorPlacement("a", 0, TILES * BYTES, BYTES, GRID)
    b = TensorPlacement("s", 1024, 4 * SCALARS, 4, (1, SCALARS))
    image.put(a, tensor)
    image.put(b, scalars)
    cases, written = [], []
    for n in range(8):
        shape, stride = _random_view(rng, least=1)
        rank = rng.randint(0, 2)
        ref = random_stream(rng, rank, lambda: Beat(rng.getrandbits(32)), 3)
        shape2, stride2 = _random_view(rng)
        count = rng.randint(0, 20)
        data = random_stream(rng, 1, lambda: Beat(rng.getrandbits(16 * T * T), T), 3)[:-1][:count]
        if n == 2:
            data = [Beat(rng.getrandbits(16 * T * T), T) for _ in range(30)]
        stored = [beat.data for beat in data if not beat.empty]
        # Stored in an order of its own: rows of three, from the last column to the first column.
        place = TensorPlacement("o", 2048 + n * 1024, 30 * BYTES, BYTES, (1, 30))
        image.get(place, (T, 30 * T), np.uint16)
        order = [row + 10 * col for row in range(10) for col in range(3)]
        written.append((place, order[: len(stored)], stored))
        positions = rng.sample(range(SCALARS), 1)[0] + 1
        regular = n % 2
        tokens = TOKENS
        out2 = (
            [beat._replace(data=int(scalars[0, i])) if not beat.empty else beat for i, beat in _numbered(TOKENS)]
            if not regular
            else to_beats(
                TokenStream(0, [0] * positions, [False] * positions, scalars[0, :positions].reshape(-1, 1, 1)),
                scalar(u32),
            )
        )
        case = ModelCase(
            f"{name} {n}",
            {"in0": ref, "in1": [*data, Beat(0, 0, 0, 1, 1)]},
            rig.cfg_for(
                view(a.base, TILES, shape, stride),
                view(a.base, TILES, shape2, stride2),
                view(b.base, SCALARS, (positions,), (1,)) | {"regular": regular},
                view(place.base, 30, (10, 3), (1, 10)),
            ),
            expected={"out0": _loaded(shape, stride), "out1": _loaded(shape2, stride2, ref, rank), "out2": out2},
            runs=1,
        )
        case.tokens = [beat.stop | beat.empty << 4 | beat.done << 5 for beat in tokens]
        if n == 2:
            case.ready = {f"out{k}": [0] * 19 + [1] for k in range(3)}
        if n >= 3:
            pressed(case, rng, offer=rng.choice([0.3, 1.0]), take=rng.choice([0.3, 0.8]))
        delay(case, START)  # counters begin with the start pulse: nothing is asked for before it
        cases.append(case)
    return rig, image, cases, written


def _numbered(stream):
    i = 0
    for beat in stream:
        yield i, beat
        i += not beat.empty


ASKED = (
    "empty reference stream", "bare stop of the reference", "bare stop first", "passes by reference", "stride 0",
    *(f"loops {n}" for n in range(5)), "loop of count 1", "input from counters", "input from list", "nothing stored",
    "every position stored", "window wraps",
)
SEEN = (
    "window full", "input's window full", "output waits", "output of passes waits", "input's output waits",
    "load refused", "store refused",
    "input refused", "element split over cycles", "store split over cycles", "ports meet at a channel",
    "bursts of different elements at once",
)


def _asked(case, stored) -> list[str]:
    """Bins of ``ASKED`` that a case's registers and beats fall into."""
    streams = stream_bins(case.inputs["in0"])
    views = [{name[3:]: value for name, value in case.cfg.items() if name.startswith(f"p{n}_")} for n in range(2)]
    loops = [(view_[f"count{k}"], view_[f"stride{k}"]) for view_ in views for k in range(view_["dims"])]
    found = {
        "empty reference stream": "empty stream" in streams,
        "bare stop of the reference": "bare stop" in streams,
        "bare stop first": "starts with bare stop" in streams,
        "passes by reference": sum(not beat.empty for beat in case.inputs["in0"]) > 1,
        "stride 0": any(stride == 0 for _, stride in loops),
        "loop of count 1": any(count == 1 for count, _ in loops),
        "input from counters": case.cfg["p2_regular"] == 1,
        "input from list": case.cfg["p2_regular"] == 0,
        "nothing stored": not stored,
        "every position stored": len(stored) == 30,
        "window wraps": len(case.expected["out1"]) > 8,
    }
    found |= {f"loops {view_['dims']}": True for view_ in views}
    return [name for name, there in found.items() if there]


def _seen(probes: set[str]) -> list[str]:
    """Bins of ``SEEN``: what the rig's probes say of a run."""
    found = {
        "window full": "full1" in probes,
        "input's window full": "full2" in probes,
        "output waits": "held0" in probes,
        "output of passes waits": "held1" in probes,
        "input's output waits": "held2" in probes,
        "load refused": {"refused0", "refused1"} <= probes,
        "input refused": "refused2" in probes,
        "store refused": "refused3" in probes,
        "element split over cycles": bool({"split0", "split1"} & probes),
        "store split over cycles": "split3" in probes,
        "ports meet at a channel": "conflict" in probes,
        "bursts of different elements at once": bool({"reordered0", "reordered1"} & probes),
    }
    return [name for name, there in found.items() if there]


def test_what_the_cases_ask_for():
    coverage = Coverage("views asked for", ASKED)
    for name in MEMORIES:
        _, _, cases, written = _cases(name)
        for case, (_, _, stored) in zip(cases, written, strict=True):
            coverage.hit_if_declared(_asked(case, stored))
    coverage.check()


@pytest.mark.parametrize("name", list(MEMORIES), ids=lambda name: name.replace(" ", "_"))
def test_views(simulator, tmp_path, name):
    rig, image, cases, written = _cases(name)
    image.write(tmp_path / "in")
    results = assert_model_equals_rtl(
        simulator,
        rig,
        cases,
        add_units=lambda *a: rig.add_units(*a, tokens=cases[0].tokens, start=START),
        agents="rtl_tests.memory_rig:agents",
        plusargs=[f"+hbm_load={tmp_path}/in", f"+hbm_dump={tmp_path}/out", f"+hbm_dump_lines={image.used_lines}"],
    )
    after = MemoryImage.read(rig.memory, tmp_path / "out")
    whole = rig.memory.layout(BYTES).span == 1  # one channel an element: it is taken or it is not
    coverage = Coverage(f"views {name}", [bin_ for bin_ in SEEN if not (whole and "split" in bin_)])
    for (model, rtl), case, (place, order, stored) in zip(results, cases, written, strict=True):
        assert rtl.notes[0]["finished"] is not None
        elements = [sum(not beat.empty for beat in case.expected[f"out{k}"]) for k in range(3)]
        assert rtl.notes[0]["read_bytes"] == BYTES * (elements[0] + elements[1]) + 4 * elements[2]
        assert rtl.notes[0]["write_bytes"] == BYTES * len(stored)
        hbm = model.st[HBM]
        note = rtl.notes[0]
        assert (hbm[0], hbm[1]) == (note["read_bytes"], note["write_bytes"])
        assert hbm[2] == (note["first_read_cycle"] + START + 1 if note["read_bytes"] else 0)
        assert hbm[3] == (note["last_write_cycle"] + START + 1 if stored else 0)
        assert not stored or note["finished"] > note["last_write_cycle"] + START
        raw = after.data[place.base : place.base + 30 * BYTES].reshape(30, BYTES)
        for position, word in zip(order, stored, strict=True):
            assert int.from_bytes(raw[position].tobytes(), "little") == word, (case.name, position)
        untouched = sorted(set(range(30)) - set(order))
        assert not raw[untouched].any()
        coverage.hit_if_declared(_seen(rig.seen(rtl.notes[0])))
    coverage.check()


HBM = 2 + 4
"""Index of the memory among the model's units: two sources and four ports come before it."""

EMPTY_VIEWS = [
    # shape, no-ref tokens, tokens of ref "x S1 S1 y S2 D"
    ((0,), "D", "S2 S2 S3 D"),
    ((2, 0), "S1 S1 D", "S1 S3 S3 S1 S4 D"),
    ((0, 2), "D", "S3 S3 S4 D"),
    ((), None, "0 S1 S1 0 S2 D"),
]


def test_empty_views(simulator):
    """Sizes of 0, and a reference's bare stops."""
    rig = _rig(SIMPLE)
    cases = []
    for shape, plain, with_ref in EMPTY_VIEWS:
        ref = beats("7 S1 S1 8 S2 D")
        tile = lambda text: [beat._replace(rows=T * (not beat.empty)) for beat in beats(text)]  # noqa: E731
        expected = {"out0": tile(plain or "0 D"), "out1": tile(with_ref), "out2": beats("D")}
        cases.append(
            ModelCase(
                f"{shape}",
                {"in0": ref, "in1": beats("S1 D")},
                rig.cfg_for(
                    view(0, 9, shape, [1] * len(shape)),
                    view(0, 9, shape, [1] * len(shape)),
                    view(0, 0, (0,), (1,)) | {"regular": 1},
                    view(0, 0, (0,), (1,)),
                ),
                expected=expected,
                runs=1,
            )
        )
    assert_model_equals_rtl(simulator, rig, cases, add_units=rig.add_units, agents="rtl_tests.memory_rig:agents")


def test_errors(simulator):
    """An index outside the tensor, an element too many."""
    rig = _rig(SIMPLE)
    good = view(0, 9, (9,), (1,))
    nothing = view(0, 0, (0,), (1,)) | {"regular": 1}
    element = Beat(5, T)
    done = Beat(0, 0, 0, 1, 1)

    def case(name, code, *, load=good, ref=good, stored=good, data=(), refs=()):
        return ModelCase(
            name,
            {"in0": [*refs, done], "in1": [*data, done]},
            rig.cfg_for(load, ref, nothing, stored),
            error=code,
            runs=1,
        )

    cases = [
        case("load beyond", ErrorCode.ADDRESS_RANGE, load=view(0, 9, (5,), (2,)) | {"limit": 8}),
        case("load before", ErrorCode.ADDRESS_RANGE, load=view(0, 9, (2,), (-1,))),
        case("ref beyond", ErrorCode.ADDRESS_RANGE, ref=view(0, 3, (2, 2), (3, 1)), refs=[Beat(1)]),
        case("store beyond", ErrorCode.ADDRESS_RANGE, stored=view(0, 2, (4,), (1,)), data=[element] * 3),
        case("one too many", ErrorCode.OVERFLOW, stored=view(0, 4, (2,), (1,)), data=[element] * 3),
        case("no room at all", ErrorCode.OVERFLOW, stored=view(0, 0, (0,), (1,)), data=[element]),
    ]
    assert_model_equals_rtl(simulator, rig, cases, add_units=rig.add_units, agents="rtl_tests.memory_rig:agents")
