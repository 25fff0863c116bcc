"""Loads by address, tiles and scalars, beside a store of small elements: the interpreter's values, the model's cycles.

Each shape of memory lays elements out in another way: several bursts on all channels, one burst on one of them, several
elements in a burst.
"""

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest

from rtl_tests.harness import (
    DONE,
    STREAM_BINS,
    Beat,
    Coverage,
    bare,
    beats,
    from_beats,
    random_stream,
    stream_bins,
    to_beats,
)
from rtl_tests.memory_rig import MemoryRig, Port, view
from rtl_tests.model_bench import ModelCase, assert_model_equals_rtl, delay, pressed
from step_hw.beat import BeatLayout
from step_hw.hbm.image import MemoryImage
from step_hw.unit import ErrorCode
from step_hw.units.random_load import RandomLoad
from step_lang import Program, Tile, interpret, ops, ragged, scalar, u32
from step_lang.errors import ViewOutOfRange
from step_lang.memory_config import MemoryConfig
from step_lang.timing import LOAD_EMPTY_LATENCY, load_timing
from step_lang.types import bf16
from step_lang.unitgraph import TensorPlacement

pytestmark = pytest.mark.long

T = 4
TILES, BYTES = 24, 2 * T * T
SCALARS = 40
TILE, SCALAR = BeatLayout(16 * T * T, T), BeatLayout(32)
WINDOW = 16
BANKED: dict[str, Any] = {
    "model": "banked", "capacity_bytes": 1 << 14, "banks": 4, "row_bytes": 64, "queue": 4, "trcd": 4, "trp": 5,
    "tras": 11, "trtp": 3, "twr": 5, "twtr": 3, "trrd": 3, "tfaw": 14, "trfc": 30, "trefi": 150, "cl": 5, "cwl": 3,
}
MEMORIES = {
    "groups": MemoryConfig(channels=4, burst_bytes=16, capacity_bytes=1 << 14, latency=9),
    "bursts": MemoryConfig(channels=2, burst_bytes=4, capacity_bytes=1 << 14, interval=1, latency=5),
    "banked": MemoryConfig(channels=2, burst_bytes=16, **BANKED),
}
PLACES = {"tiles": 0, "scalars": 1024, "out": 2048}
BINS = (
    *STREAM_BINS, "window full", "window wraps", "output waits", "channel refuses", "element split over cycles",
    "ports meet at a channel", "same address twice running", "first address", "last address", "every place in a burst",
    "every group of channels", "store refused",
)


def _rig(memory):
    return MemoryRig(
        memory,
        [Port("random_load", TILE, BYTES, window=WINDOW), Port("random_load", SCALAR, 4, window=WINDOW)],
        [Port("store", SCALAR, 4)],
    )


@cache
def _contents():
    rng = np.random.default_rng(3)
    tiles = rng.integers(0, 1 << 16, (T, TILES * T), dtype=np.uint16).view(bf16.numpy)
    return tiles, rng.integers(0, 1 << 32, (1, SCALARS), dtype=np.uint32)


@cache
def _image(memory) -> MemoryImage:
    image = MemoryImage(memory)
    image.put(TensorPlacement("tiles", PLACES["tiles"], 0, BYTES, (1, TILES)), _contents()[0])
    image.put(TensorPlacement("scalars", PLACES["scalars"], 0, 4, (1, SCALARS)), _contents()[1])
    image.get(_target(0), (1, SCALARS), np.uint32)
    return image


def _target(case: int) -> TensorPlacement:
    return TensorPlacement("out", PLACES["out"] + 256 * case, 4 * SCALARS, 4, (1, SCALARS))


def _loaded(which: int, addresses, rank: int):
    """Beats by the interpreter."""
    tensor = _contents()[which]
    type_ = (Tile(T, T, bf16), scalar(u32))[which]
    with Program("random") as program:
        source = program.tensor("a", tensor.shape, type_.dtype)
        target = program.tensor("b", (type_.rows, 4096 * type_.cols), type_.dtype)
        stream = ops.input_stream("addr", scalar(u32), tuple(ragged(f"d{i}") for i in range(rank + 1)))
        out = ops.random_offchip_load(stream, source, (type_.rows, type_.cols))
        ops.linear_offchip_store(out, target)
    given = {"addr": from_beats(addresses, scalar(u32), rank)}
    return to_beats(interpret(program, {"a": tensor}, given).stream(out), type_)


def _addresses(rng: Random, size: int, rank: int, **lengths):
    last = [0]

    def address():
        if rng.random() > 0.2:
            last[0] = rng.choice([0, size - 1, rng.randrange(size), rng.randrange(size)])
        return Beat(last[0])

    return random_stream(rng, rank, address, 4, **lengths)


def _registers(rig, stored=0, tiles=TILES, bases=(0, 0, 0)):
    return rig.cfg_for(
        {"base": PLACES["tiles"] + bases[0], "limit": tiles},
        {"base": PLACES["scalars"] + bases[1], "limit": SCALARS},
        view(_target(stored).base + bases[2], SCALARS, (SCALARS,), (1,)),
    )


def _cases(name):
    memory = MEMORIES[name]
    rig, rng, image = _rig(memory), Random(f"random {name}"), _image(memory)
    coverage = Coverage(f"random_load {name}", [b for b in BINS if b != "back to back streams"])
    cases, stored = [], []
    for n in range(8):
        rank = rng.randint(1, 2)
        streams = [_addresses(rng, size, rank, outer=0 if n == 3 else rng.choice([1, 5])) for size in (TILES, SCALARS)]
        if n in (0, 2):
            streams = [[Beat(a) for a in range(size)] + [DONE] for size in (TILES, SCALARS)]  # each address once
            rank = 0
        elif n == 1:
            streams = [beats("5 S1 D"), beats("S1 S1 3 S1 D")]
            rank = 1
        data = [Beat(rng.getrandbits(32)) for _ in range(SCALARS if n in (0, 2) else rng.randint(0, SCALARS))]
        stored.append((_target(n), [beat.data for beat in data]))
        image.get(_target(n), (1, SCALARS), np.uint32)
        case = ModelCase(
            f"{name} {n}", {"in0": streams[0], "in1": streams[1], "in2": [*data, DONE]}, _registers(rig, n),
            expected={"out0": _loaded(0, streams[0], rank), "out1": _loaded(1, streams[1], rank)}, runs=1,
        )
        if n == 2:
            case.ready = {"out0": [0] * 19 + [1], "out1": [0] * 19 + [1]}
        if n > 3:
            pressed(case, rng, offer=rng.choice([0.3, 1.0]), take=rng.choice([0.2, 0.8]))
        delay(case, 1)  # counters begin with the start pulse
        _cover(coverage, memory, streams)
        cases.append(case)
    return rig, image, cases, stored, coverage


def _cover(coverage, memory, streams):
    for stream, size, element_bytes in zip(streams, (TILES, SCALARS), (BYTES, 4), strict=True):
        where = cover_addresses(coverage, memory, stream, size, element_bytes)
        coverage.hit("window wraps", len(stream) > WINDOW)
        coverage.hit("same address twice running", any(a == b for a, b in pairwise(where)))


def cover_addresses(coverage: Coverage, memory: MemoryConfig, stream: Sequence[Beat], size: int,
                    element_bytes: int) -> list[int]:
    """Count bins of a stream of addresses of a tensor of ``size`` elements; its addresses."""
    layout = memory.layout(element_bytes)
    where = [beat.data for beat in stream if not beat.empty]
    coverage.hit_if_declared(stream_bins(stream))
    coverage.hit("first address", 0 in where)
    coverage.hit("last address", size - 1 in where)
    coverage.hit("every place in a burst", len({a % layout.per_burst for a in where}) == layout.per_burst)
    groups = {a // layout.per_burst % layout.groups for a in where}
    coverage.hit("every group of channels", len(groups) == layout.groups)
    return where


@pytest.mark.parametrize("name", list(MEMORIES))
def test_random_load(simulator, tmp_path, name):
    rig, image, cases, stored, coverage = _cases(name)
    image.write(tmp_path / "in")
    results = assert_model_equals_rtl(
        simulator, rig, cases, add_units=rig.add_units, agents="rtl_tests.memory_rig:agents",
        plusargs=[f"+hbm_load={tmp_path}/in", f"+hbm_dump={tmp_path}/out", f"+hbm_dump_lines={image.used_lines}"],
    )
    after = MemoryImage.read(rig.memory, tmp_path / "out")
    for (model, rtl), case, (place, words) in zip(results, cases, stored, strict=True):
        note, seen = rtl.notes[0], rig.seen(rtl.notes[0])
        loaded = [sum(not beat.empty for beat in case.expected[out]) for out in ("out0", "out1")]
        assert (note["read_bytes"], note["write_bytes"]) == (BYTES * loaded[0] + 4 * loaded[1], 4 * len(words))
        if words:  # finished means that memory has all of it; the counters begin a cycle later than the bench's
            assert note["finished"] > note["last_write_cycle"] + 1
        assert model.st[3 + 3][:2].tolist() == [note["read_bytes"], note["write_bytes"]]
        assert after.get(place, (1, SCALARS), np.uint32)[0].tolist() == words + [0] * (SCALARS - len(words))
        for n in range(2):
            coverage.hit("window full", f"full{n}" in seen)
            coverage.hit("output waits", f"held{n}" in seen)
            coverage.hit("channel refuses", f"refused{n}" in seen)
        coverage.hit("element split over cycles", "split0" in seen)
        coverage.hit("ports meet at a channel", "conflict" in seen)
        coverage.hit("store refused", "refused2" in seen)
    coverage.check()


def test_errors(simulator):
    """An address outside the tensor, a base within a line: each unit stops with ADDRESS_RANGE."""
    rig = _rig(MEMORIES["groups"])
    good, element = [Beat(1), DONE], [Beat(9), DONE]

    def case(name, addresses=good, scalars=good, data=(DONE,), **registers):
        return ModelCase(name, {"in0": addresses, "in1": scalars, "in2": list(data)}, _registers(rig, **registers),
                         error=ErrorCode.ADDRESS_RANGE, runs=1)

    assert_model_equals_rtl(simulator, rig, [
        case("first address beyond", addresses=[Beat(2), Beat(3), DONE], tiles=3),
        case("scalar beyond", scalars=[bare(1), Beat(SCALARS), DONE]),
        case("largest address", addresses=[Beat((1 << 32) - 1), DONE]),
        case("load's base within a line", bases=(16, 0, 0)),
        case("scalar load's base within a line", bases=(0, 4, 0)),
        case("store's base within a line", bases=(0, 0, 32), data=element),
    ], add_units=rig.add_units, agents="rtl_tests.memory_rig:agents")


def test_interpreter_refuses_the_same_addresses():
    with pytest.raises(ViewOutOfRange, match=r"address 24 .* vs tiles of tensor 'a' 0\.\.23"):
        _loaded(0, [Beat(TILES), DONE], 0)


@pytest.mark.parametrize("name", ["groups", "bursts"])
def test_timing(simulator, name):
    """Latency and interval as `load_timing` states them; elements on different channels do not wait for one another."""
    memory = MEMORIES[name]
    rig = _rig(memory)
    layouts = [memory.layout(BYTES), memory.layout(4)]
    n = 12
    same = [[Beat(0)] * n + [DONE] for _ in range(2)]
    apart = [[Beat(i * layout.per_burst % size) for i in range(n)] + [DONE]
             for layout, size in zip(layouts, (TILES, SCALARS), strict=True)]
    only = lambda port, stream: {"in0": [DONE], "in1": [DONE], "in2": [DONE]} | {f"in{port}": stream}  # noqa: E731
    cases = [ModelCase(f"{kind} {port}", only(port, streams[port]), _registers(rig), runs=1)
             for kind, streams in (("same", same), ("apart", apart)) for port in range(2)]
    cases.append(ModelCase("empty", only(0, beats("S1 D")), _registers(rig), runs=1))
    results = assert_model_equals_rtl(simulator, rig, cases, add_units=rig.add_units,
                                      agents="rtl_tests.memory_rig:agents")
    for index, (_, rtl) in enumerate(results[:4]):
        port, element_bytes = index % 2, (BYTES, 4)[index % 2]
        timing, out = load_timing(memory, element_bytes), rtl.pushes[f"out{port}"]
        # The link's own cycle: taken from the bench in cycle 0, at the unit in cycle 1.
        assert out[0] - (rtl.stamps[f"in{port}"][0] + 1) == timing.latency, cases[index].name
        steps = [b - a for a, b in pairwise(out[3:n])]
        if index < 2:
            assert set(steps) == {timing.interval}, cases[index].name
        else:
            assert sum(steps) / len(steps) == max(1, timing.interval / layouts[port].groups), cases[index].name
    empty = results[4][1]
    assert empty.pushes["out0"][0] - (empty.stamps["in0"][0] + 1) == LOAD_EMPTY_LATENCY


def test_address_width():
    with pytest.raises(ValueError, match=r"an address has 1\.\.32 bits, not 33"):
        RandomLoad(TILE, address=BeatLayout(33), memory=MEMORIES["groups"], element_bytes=BYTES)
