"""Single timings of tile fidelity on the paper's machine, against the formula of its section 4.3 computed by hand: an
action takes max(bytes in / bandwidth, FLOPs / compute bandwidth, bytes out / bandwidth) cycles, at least one, bytes
counting where they come from or go to an on-chip memory; the tile is handed over whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from sim.tests.one_operator import Mini, at_tiles
from sim.tile import RooflineMachine
from step_lang import Selector, fn, fp32, ops
from step_lang.memory_config import MemoryConfig

TILE = 8 * 12
"""Elements of a tile; in bf16 it has twice as many bytes."""
WIDE = MemoryConfig(channels=32, burst_bytes=64, interval=1, latency=10, capacity_bytes=1 << 24)
NARROW = RooflineMachine(compute_bw=2, onchip_bandwidth=16, memory=WIDE)
"""At 2 FLOPs/cycle an elementwise function is limited by compute, its operand read in a quarter of that time."""
STRONG = replace(NARROW, compute_bw=256)
"""At 256 FLOPs/cycle by on-chip memory."""
READ = 2 * TILE // 16
"""Cycles to read a tile of bf16."""


@dataclass(frozen=True)
class Case:
    """``make`` a program whose operator ``op`` (or ``of``) takes ``work`` cycles and ``flops`` for an element, of which
    ``elements`` come for each of n, and ``done`` cycles for the end of the stream. Its operand is the stream
    ``arrives``, and z where there is one; before it come ``flops_before`` an element."""

    name: str
    work: int
    make: Callable[[Mini], None]
    machine: RooflineMachine = NARROW
    elements: int = 1
    of: str = "op"
    flops: int = 0
    arrives: str = "x"
    done: int = 1
    flops_before: int = 0


def simple(operator, *inner: int, rows: int = 8, cols: int = 12):
    return lambda m: m.store(operator(m.load("x", rows, cols, *inner)))


def both(operator, x: tuple[int, ...] = (8, 12), z: tuple[int, ...] = (8, 12)):
    return lambda m: m.store(operator(m.load("x", *x), m.load("z", *z)))


def accumulated(function, rows: int = 8, cols: int = 12):
    return simple(lambda x: ops.accum(function, x, rank=1, name="op"), 3, rows=rows, cols=cols)


def after_buffer(m: Mini) -> None:
    kept = ops.bufferize(m.load("x", 8, 12, 2), rank=1, name="keep")
    m.store(ops.map(fn.exp(), ops.streamify(kept, repeat=2, name="read"), name="op"))


def after_work(m: Mini) -> None:
    """What comes from an operator that computes lies in no memory."""
    m.store(ops.map(fn.exp(), ops.map(fn.exp(), m.load(), name="before"), compute_bw=256, name="op"))


def routed(m: Mini) -> None:
    """What is only routed still lies in the load's memory."""
    part, = ops.partition(m.load(), m.selectors("to", lambda i: {0}, 1), rank=0, num_consumers=1, name="route")
    m.store(ops.map(fn.exp(), part, name="op"), m.n)


def in_turn(m: Mini) -> None:
    for part in ops.partition(m.load(), m.selectors("to", lambda i: {i % 2}), rank=0, num_consumers=2, name="op"):
        m.store(part, m.n // 2)


CASES = [
    Case("exp, by compute", TILE // 2, simple(lambda x: ops.map(fn.exp(), x, name="op")), flops=TILE),
    Case("exp, by memory", READ, simple(lambda x: ops.map(fn.exp(), x, name="op")), STRONG, flops=TILE),
    Case("exp, operands in no memory", 1, simple(lambda x: ops.map(fn.exp(), x, name="op")),
         replace(STRONG, load_buffers=False), flops=TILE),
    Case("its own compute bandwidth", -(-TILE // 5), simple(lambda x: ops.map(fn.exp(), x, compute_bw=5, name="op")),
         flops=TILE),
    Case("a wider result", TILE // 2, simple(lambda x: ops.map(fn.cast(fp32), x, name="op")), flops=TILE),
    Case("fp32 operands are twice as long to read", 2 * READ,
         lambda m: m.store(
        ops.map(fn.add(), m.load("x", dtype=fp32), m.load("z", dtype=fp32), name="op")), STRONG, flops=TILE),
    Case("add", TILE // 2, both(lambda x, z: ops.map(fn.add(), x, z, name="op")), flops=TILE),
    Case("add a column: FLOPs of the result", TILE // 2,
         both(lambda x, z: ops.map(fn.add(), z, x, name="op"), z=(8, 1)), flops=TILE),
    Case("row_sum: FLOPs of the operand", TILE // 2, simple(lambda x: ops.map(fn.row_sum(), x, name="op")), flops=TILE),
    Case("matmul, by compute", 2 * 8 * 12 * 16 // 2,
         both(lambda x, z: ops.map(fn.matmul(), x, z, name="op"), z=(12, 16)), flops=2 * 8 * 12 * 16),
    Case("matmul, by its larger operand", 2 * 12 * 16 // 16,
         both(lambda x, z: ops.map(fn.matmul(), x, z, name="op"), z=(12, 16)), STRONG, flops=2 * 8 * 12 * 16),
    Case("matmul, by its first operand", 2 * 12 * 16 // 16,
         both(lambda x, z: ops.map(fn.matmul(), x, z, name="op"), x=(16, 12), z=(12, 4)), STRONG,
         flops=2 * 16 * 12 * 4),
    Case("matmul, transposed", 2 * 8 * 12 * 16 // 2,
         both(lambda x, z: ops.map(fn.matmul(transpose_b=True), x, z, name="op"), z=(16, 12)), flops=2 * 8 * 12 * 16),
    Case("a function without FLOPs", READ, both(lambda x, z: ops.map(fn.concat_cols(), x, z, name="op"))),
    Case("after a buffer", READ, after_buffer, STRONG, elements=4, flops=TILE, arrives="read"),
    Case("after an operator", 1, after_work, NARROW, flops=TILE, arrives="before", flops_before=TILE),
    Case("after a router", READ, routed, STRONG, flops=TILE, arrives="route"),
    Case("bufferize: bytes in", READ, simple(
        lambda x: ops.streamify(ops.bufferize(x, rank=1, name="keep"), repeat=2, name="op"), 3), elements=3, of="keep"),
    Case("streamify: bytes out", READ, simple(
        lambda x: ops.streamify(ops.bufferize(x, rank=1, name="keep"), repeat=2, name="op"), 3), elements=6,
        arrives="keep"),
    Case("accum of add", TILE // 2, accumulated(fn.add()), elements=3, flops=TILE),
    Case("accum of row_max", TILE // 2, accumulated(fn.row_max()), elements=3, flops=TILE),
    Case("accum of matmul", 2 * 8 * 12 * 16 // 2, lambda m: m.store(
        ops.accum(fn.matmul(), m.load("x", 8, 12, 3), m.load("z", 12, 16, 3), rank=1, name="op")), elements=3,
        flops=2 * 8 * 12 * 16),
    Case("accum of concat_rows: bytes in", 2, accumulated(fn.concat_rows(), 1, 12), elements=3),
    Case("scan", TILE // 2, simple(lambda x: ops.scan(fn.add(), x, rank=1, name="op"), 3), elements=3, flops=TILE),
    Case("repeat", 1, simple(lambda x: ops.repeat(x, 3, name="op")), elements=3),
    Case("expand", 1, lambda m: m.store(ops.expand(m.load("x", 8, 12, 1), m.load("r", 4, 4, 3), rank=1, name="op")),
         elements=3),
    Case("flatten", 1, simple(lambda x: ops.flatten(x, 0, 1, name="op"), 3), elements=3),
    Case("promote", 1, simple(lambda x: ops.promote(x, name="op"), 3), elements=3),
    Case("reshape", 1, simple(lambda x: ops.reshape(x, 2, pad=0, name="op")[0], 3), elements=4),
    Case("zip", 1, lambda m: m.store(ops.flat_map(fn.address_range(stride=1), ops.zip(
        m.numbers(), m.host("z", [2] * m.n), name="op"), name="range"), 2 * m.n)),
    Case("partition", 1, in_turn),
    Case("reassemble", 1, lambda m: m.store(ops.reassemble(
        [m.load("x"), m.load("z")], m.host("of", [{i % 2} for i in range(2 * m.n)], Selector(2)), rank=0,
        name="op"), 2 * m.n, 1), elements=2, done=0),
    Case("eager_merge", 1, lambda m: m.store(ops.eager_merge([m.load("x"), m.load("z")], name="op")[0], 2 * m.n),
         elements=2),
    Case("flat_map", 1, lambda m: m.store(
        ops.flat_map(fn.counter(), m.host("x", [3] * m.n), name="op"), 3 * m.n), elements=3),
    Case("rows split", 1, simple(lambda x: ops.flat_map(fn.split_rows(rows=1), x, name="op")), elements=8),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "_"))
def test_work(case: Case):
    """All work that there is, done included; and where an operator limits the run, the time from element to element."""
    small, large = (at_tiles(case.make, n, case.machine) for n in (4, 8))
    name = case.of
    for n, run in ((4, small), (8, large)):
        assert run.busy[name] == n * case.elements * case.work + case.done
        if case.flops:
            assert run.flops == n * case.elements * (case.flops + case.flops_before)
    of = next(stream for stream in large.streams if stream.split("_")[0] == name)
    if case.work > READ:
        assert large.streams[of][1] - small.streams[of][1] == 4 * case.elements * case.work
    if case.flops and case.elements == 1:
        came = max(small.streams[other][0] for other in (case.arrives, "z") if other in small.streams)
        assert small.streams[of][0] - came == case.work


LINE = MemoryConfig(channels=2, burst_bytes=64, interval=3, latency=14, capacity_bytes=1 << 24)


def copy(times: int, cols: int = 16):
    def make(m: Mini) -> None:
        for k in range(times):
            m.store(m.load(f"x{k}", 16, cols))
    return make


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("lines", [1, 4])
def test_memory(times, lines):
    """A tile of 8 bursts on 2 channels of a burst every 3 cycles: 12 cycles, read and written. The first tile is taken
    the cycle after its last burst is there, a latency after that began. Ports are served in turn, from the second on,
    ``lines`` bursts of each channel at a time."""
    machine = RooflineMachine(memory=LINE, lines=lines)
    small, large = (at_tiles(copy(times), n, machine) for n in (8, 16))
    assert large.cycles - small.cycles == 8 * 2 * 12 * times
    last = {1: {"x0": 9}, 2: {"x0": 21, "x1": {1: 18, 4: 9}[lines]}}[times]
    for name, begins in last.items():
        assert small.streams[name][0] == begins + 14 + 1


def test_bursts_that_the_channels_do_not_divide():
    """A tile of 5 bursts on 2 channels: one has 3 of them, the other 3 of the next tile's, which begins there."""
    machine = RooflineMachine(memory=LINE, lines=4)
    small, large = (at_tiles(copy(1, 10), n, machine) for n in (8, 16))
    assert small.streams["x0"][0] == 2 * 3 + 14 + 1
    assert large.cycles - small.cycles == 8 * 5 * 3


@pytest.mark.parametrize("depth", [2, 4])
def test_depth_of_a_channel(depth):
    """A fast consumer is ahead of a slow one by what the channel to the slow one holds: the end of the stream, for
    which promote waits, leaves the fork when the last tile has a place there."""
    def make(m: Mini) -> None:
        x = m.load()
        m.store(ops.map(fn.exp(), x, name="slow"))
        m.store(ops.flatten(ops.promote(x, name="fast"), 0, 1, name="again"))

    machine = replace(NARROW, depth=depth)
    run = at_tiles(make, 16, machine)
    assert run.streams["slow"][1] - run.streams["slow"][0] == 15 * TILE // 2
    assert run.streams["slow"][1] - run.streams["fast"][1] == depth * TILE // 2 - 1


def test_buffers_in_turn():
    """Two buffers: one is filled while the other is read; with one neither overlaps."""
    def make(m: Mini) -> None:
        m.store(ops.streamify(ops.bufferize(m.load("x", 8, 12, 3), rank=1, name="keep"), repeat=2, name="op"))

    period = {}
    for live in (1, 2):
        small, large = (at_tiles(make, n, replace(NARROW, live_buffers=live)) for n in (4, 8))
        period[live] = (large.streams["op"][1] - small.streams["op"][1]) / 4
    assert period[2] == 2 * 3 * READ
    assert period[1] == 3 * READ + 2 * 3 * READ
