"""Stores by address, acknowledged and not, beside loads: the interpreter's memory, the model's cycles.

Each shape of memory lays elements out in another way, as in `test_random_load`.
"""

from functools import cache
from itertools import pairwise
from random import Random

import numpy as np
import pytest

from rtl_tests.compute_bench import inner_streams
from rtl_tests.harness import DONE, STREAM_BINS, Beat, Coverage, bare, beats, from_beats, to_beats
from rtl_tests.harness.streams import random_stream
from rtl_tests.memory_rig import MemoryRig, Port
from rtl_tests.model_bench import ModelCase, assert_model_equals_rtl, delay, pressed
from rtl_tests.test_random_load import BYTES, MEMORIES, SCALAR, TILE, T, cover_addresses
from step_hw.beat import BeatLayout
from step_hw.hbm.image import MemoryImage
from step_hw.unit import ErrorCode
from step_hw.units.random_store import RandomStore
from step_lang import Program, Tile, interpret, ops, ragged, scalar, u32
from step_lang.errors import MisalignedStreams, ViewOutOfRange
from step_lang.memory_config import MemoryConfig
from step_lang.timing import store_pending
from step_lang.types import bf16
from step_lang.unitgraph import TensorPlacement

pytestmark = pytest.mark.long

TILES, SCALARS, SOURCE = 16, 40, 16
SPACE = 1024    # bytes that a run writes to
TENSORS = ((Tile(T, T, bf16), (T, TILES * T)), (scalar(u32), (1, SCALARS)))
BINS = (
    *(name for name in STREAM_BINS if name != "back to back streams"), "chunks", "acknowledgement waits",
    "same address again", "first address", "last address", "every place in a burst", "every group of channels",
    "channel refuses", "element split over cycles", "ports meet at a channel",
)


def _rig(memory):
    return MemoryRig(
        memory,
        [Port("random_load", SCALAR, 4)],
        [Port("random_store", TILE, BYTES, acknowledges=True), Port("random_store", SCALAR, 4)],
    )


def _places(case: int) -> list[TensorPlacement]:
    """Where the stores of a case write: regions of its own, since the memory's contents stay."""
    base = SPACE * (1 + case)
    return [TensorPlacement("tiles", base, 0, BYTES, (1, TILES)),
            TensorPlacement("scalars", base + TILES * BYTES, 0, 4, (1, SCALARS))]


def _registers(rig, case=0, inner=0, tiles=TILES, scalars=SCALARS, bases=(0, 0)):
    tile, scalar_ = _places(case)
    return rig.cfg_for(
        {"base": 0, "limit": SOURCE},
        {"base": tile.base + bases[0], "limit": tiles, "inner": inner},
        {"base": scalar_.base + bases[1], "limit": scalars, "inner": 0},
    )


def _interpreted(which: int, addresses, elements, rank: int, sizes=()):
    """(acknowledgements, the tensor after the run) by the interpreter."""
    type_, shape = TENSORS[which]
    dims = tuple(ragged(f"d{i}") for i in range(rank + 1 - len(sizes))) + tuple(sizes)
    with Program("random") as program:
        target = program.tensor("t", shape, type_.dtype)
        addr, data = ops.input_stream("addr", scalar(u32), dims), ops.input_stream("data", type_, dims)
        ack = ops.random_offchip_store(addr, data, target, rank=len(sizes))
    given = {"addr": from_beats(addresses, scalar(u32), rank), "data": from_beats(elements, type_, rank)}
    result = interpret(program, {}, given)
    return to_beats(ack.producer.interpret(_Context({"t": np.zeros(shape, type_.dtype.numpy)}),
                                           [given["addr"], given["data"]])[0], ack.type), result.tensors["t"]


class _Context:
    """What interpreting one operator needs."""

    def __init__(self, tensors):
        self.tensors = tensors
        self.offchip_write_bytes = 0


def _streams(rng: Random, size: int, width: int, rank: int, sizes, outer=4):
    """Addresses and elements of one shape."""
    shape = inner_streams(random_stream(rng, rank - len(sizes), lambda: Beat(0), 3, outer=outer), sizes)
    last = [0]

    def address():
        if rng.random() > 0.2:
            last[0] = rng.choice([0, size - 1, rng.randrange(size), rng.randrange(size)])
        return last[0]

    addresses = [beat if beat.empty else beat._replace(data=address()) for beat in shape]
    rows = T if width > 32 else 1
    return addresses, [beat if beat.empty else beat._replace(data=rng.getrandbits(width), rows=rows) for beat in shape]


def _random(rng: Random, layout: BeatLayout) -> Beat:
    return Beat(rng.getrandbits(layout.data_width), layout.max_rows)


@cache
def _cases(name):
    memory = MEMORIES[name]
    rig, rng = _rig(memory), Random(f"random store {name}")
    coverage = Coverage(f"random_store {name}", BINS)
    cases, after = [], []
    for n in range(9):
        sizes = [(), (2,), (), (1, 2), (), (2, 1), (), (), ()][n]
        rank = len(sizes) + rng.randint(0, 2)
        tiles = _streams(rng, TILES, TILE.data_width, rank, sizes, outer=0 if n == 4 else 4)
        scalars = _streams(rng, SCALARS, 32, 1, ())
        if n == 0:      # each address once
            tiles, scalars = (([*map(Beat, range(size)), DONE], [*(_random(rng, layout) for _ in range(size)), DONE])
                              for size, layout in ((TILES, TILE), (SCALARS, SCALAR)))
            rank, sizes = 0, ()
        elif n == 2:
            tiles = beats("5 S1 D"), [Beat(77, T, 1), DONE]
            scalars = beats("S1 S1 3 S1 D"), beats("S1 S1 9 S1 D")
            rank = 1
        reads = [Beat(rng.randrange(SOURCE)) for _ in range(rng.choice([0, 30]))]
        acks, tensor = _interpreted(0, *tiles, rank, sizes)
        after.append((tensor, _interpreted(1, *scalars, 0 if n == 0 else 1)[1]))
        case = ModelCase(
            f"{name} {n}",
            {"in0": [*reads, DONE], "in1": tiles[0], "in2": tiles[1], "in3": scalars[0], "in4": scalars[1]},
            _registers(rig, n, len(sizes)), expected={"out1": acks}, runs=1)
        if n == 0:
            case.ready = {"out1": [0] * 19 + [1]}
        elif n > 2:
            pressed(case, rng, offer=rng.choice([0.3, 1.0]), take=rng.choice([0.2, 0.8]), outputs=["out0", "out1"])
        delay(case, 1)  # counters begin with the start pulse
        for stream, size, element_bytes in ((tiles[0], TILES, BYTES), (scalars[0], SCALARS, 4)):
            where = cover_addresses(coverage, memory, stream, size, element_bytes)
            coverage.hit("same address again", len(set(where)) < len(where))
        coverage.hit("chunks", bool(sizes))
        cases.append(case)
    return rig, cases, after, coverage


@pytest.mark.parametrize("name", list(MEMORIES))
def test_random_store(simulator, tmp_path, name):
    rig, cases, stored, coverage = _cases(name)
    lines = SPACE * (1 + len(cases)) // rig.memory.alignment
    results = assert_model_equals_rtl(
        simulator, rig, cases, add_units=rig.add_units, agents="rtl_tests.memory_rig:agents",
        plusargs=[f"+hbm_dump={tmp_path}/out", f"+hbm_dump_lines={lines}"],
    )
    memory = MemoryImage.read(rig.memory, tmp_path / "out")
    for n, ((_, rtl), case, tensors) in enumerate(zip(results, cases, stored, strict=True)):
        note, seen = rtl.notes[0], rig.seen(rtl.notes[0])
        for place, tensor in zip(_places(n), tensors, strict=True):
            found = memory.get(place, tensor.shape, tensor.dtype)
            assert found.tobytes() == tensor.tobytes(), (case.name, place.name)
        written = [sum(not beat.empty for beat in case.inputs[port]) for port in ("in1", "in3")]
        assert note["write_bytes"] == BYTES * written[0] + 4 * written[1]
        if any(written):    # finished: memory has all of it; the counters begin a cycle later than the bench's
            assert note["finished"] > note["last_write_cycle"] + 1
        coverage.hit("acknowledgement waits", "0" in "".join(map(str, case.ready.get("out1", []))))
        coverage.hit("channel refuses", "refused1" in seen or "refused2" in seen)
        coverage.hit("element split over cycles", "split1" in seen)
        coverage.hit("ports meet at a channel", "conflict" in seen)
    coverage.check()


def test_no_more_is_stored_than_can_be_acknowledged(simulator):
    """An output that takes nothing stops the unit when its list is full; nothing is lost."""
    memory = MEMORIES["groups"]
    rig, n, closed = _rig(memory), 30, 400
    tiles = [[*(Beat(k % TILES) for k in range(n)), DONE], [*(Beat(k, T) for k in range(n)), DONE]]
    case = ModelCase("closed", {"in0": [DONE], "in1": tiles[0], "in2": tiles[1], "in3": [DONE], "in4": [DONE]},
                     _registers(rig), ready={"out1": [0] * closed + [1] * closed}, runs=1,
                     expected={"out1": [*[Beat(1)] * n, DONE]})
    ((_, rtl),) = assert_model_equals_rtl(simulator, rig, [case], add_units=rig.add_units,
                                          agents="rtl_tests.memory_rig:agents")
    early = sum(stamp < closed for stamp in rtl.stamps["in2"])
    assert early == 2 + store_pending(memory, BYTES) + 2    # two in the link, and two acknowledgements in theirs


@pytest.mark.parametrize("pattern", ["one channel after the other", "one channel"])
def test_an_element_a_cycle(simulator, pattern):
    """On a memory that takes one a cycle the unit stores one a cycle and acknowledges one a cycle."""
    memory = MemoryConfig(channels=4, burst_bytes=BYTES, capacity_bytes=1 << 14, interval=1, latency=9)
    rig, n = _rig(memory), 100
    step = 1 if pattern.endswith("other") else 4
    tiles = [[*(Beat(k * step % TILES) for k in range(n)), DONE], [*(Beat(k, T) for k in range(n)), DONE]]
    case = ModelCase(pattern, {"in0": [DONE], "in1": tiles[0], "in2": tiles[1], "in3": [DONE], "in4": [DONE]},
                     _registers(rig), runs=1, expected={"out1": [*[Beat(1)] * n, DONE]})
    ((_, rtl),) = assert_model_equals_rtl(simulator, rig, [case], add_units=rig.add_units,
                                          agents="rtl_tests.memory_rig:agents")
    told = rtl.pushes["out1"][:-1]
    assert {b - a for a, b in pairwise(told)} == {1}
    assert len(told) / (told[-1] - told[0] + 1) >= 0.95
    # Link, the channel's queue, the burst accepted, the count of it.
    assert told[0] - (rtl.stamps["in2"][0] + 1) == 2


def test_errors(simulator):
    """Addresses outside the tensor, a base within a line, streams out of step: the unit stops with the code."""
    rig = _rig(MEMORIES["groups"])
    range_ = ErrorCode.ADDRESS_RANGE
    idle = {"in0": [DONE], "in1": [DONE], "in2": [DONE], "in3": [DONE], "in4": [DONE]}

    def case(name, addresses, elements, error=range_, scalars=False, **registers):
        ports = ("in3", "in4") if scalars else ("in1", "in2")
        inputs = idle | dict(zip(ports, (addresses, elements), strict=True))
        return ModelCase(name, inputs, _registers(rig, **registers), error=error, runs=1)

    tile, word = Beat(3, T), Beat(9)
    assert_model_equals_rtl(simulator, rig, [
        case("first address beyond", [Beat(2), Beat(3), DONE], [tile, tile, DONE], tiles=3),
        case("scalar beyond", [bare(1), Beat(SCALARS), DONE], [bare(1), word, DONE], scalars=True),
        case("largest address", [Beat((1 << 32) - 1), DONE], [tile, DONE]),
        case("base within a line", [Beat(0), DONE], [tile, DONE], bases=(16, 0)),
        case("scalar base within a line", [Beat(0), DONE], [word, DONE], scalars=True, bases=(0, 4)),
        case("stops differ", [Beat(0, 1, 1), DONE], [tile, DONE], ErrorCode.MISALIGNED),
        case("an element for a bare stop", [Beat(1), bare(1), DONE], [tile, Beat(3, T, 1), DONE], ErrorCode.MISALIGNED),
        case("fewer elements", [Beat(1), Beat(2), DONE], [tile, DONE], ErrorCode.MISALIGNED),
        case("fewer addresses", [DONE], [word, DONE], ErrorCode.MISALIGNED, scalars=True),
    ], add_units=rig.add_units, agents="rtl_tests.memory_rig:agents")


def test_interpreter_refuses_the_same():
    with pytest.raises(ViewOutOfRange, match=r"address 16 .* vs tiles of tensor 't' 0\.\.15"):
        _interpreted(0, [Beat(TILES), DONE], [Beat(0, T), DONE], 0)
    with pytest.raises(MisalignedStreams):
        _interpreted(0, [Beat(1, 1, 1), DONE], [Beat(0, T), Beat(0, T, 1), DONE], 1)


def test_parameters_that_are_none():
    memory = MEMORIES["groups"]
    with pytest.raises(ValueError, match=r"an address has 1\.\.32 bits, not 33"):
        RandomStore(BeatLayout(33), TILE, memory=memory, element_bytes=BYTES)
    with pytest.raises(ValueError, match="16 bytes in memory are too few for 256 data bits"):
        RandomStore(SCALAR, TILE, memory=memory, element_bytes=16)
