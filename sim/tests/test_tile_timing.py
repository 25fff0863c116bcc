"""Single timings of tile fidelity on the hardware's machine: a program around each operator, against beat fidelity,
which is equal to RTL. Where nothing is said, the cycles of the first and the last beat of every stream are the same, as
are those of the whole run and the order of grants; the rate is known by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import pytest

from sim.prediction import warm_up
from sim.tests.one_operator import FAST, HW, Mini, at_beats, at_tiles
from sim.tile import BeatMachine
from step_lang import Selector, bf16, fn, fp32, int32, ops, ragged, scalar, u32
from step_lang.hwconfig import HardwareConfig
from step_lang.memory_config import MemoryConfig


@dataclass(frozen=True)
class Case:
    """``make`` a program, whose stream ``op`` (or ``of``) moves ``rate`` cycles from tile to tile (group to group).

    late : by stream, or "cycles": (first, last) cycles that tile fidelity is late, for the reason ``why``
    n : tiles; the other run has twice as many
    """

    name: str
    rate: float
    make: Callable[[Mini], None]
    of: str = "op"
    hw: HardwareConfig = HW
    late: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    why: str = ""
    n: int = 4


def rows_of(m: Mini, rows: int, *inner: int):
    """Tiles of 8 x 12 of which ``rows`` rows are valid."""
    counts = [rows] * m.n if not inner else [[rows] * inner[0]] * m.n
    return ops.map(fn.set_offset(), m.load("x", 8, 12, *inner), m.host("count", counts), name="valid")


def store_rows(m: Mini, stream, rows: int) -> None:
    m.store(ops.flat_map(fn.split_rows(rows=1), stream, name="split"), rows * m.n)


def simple(operator, *inner: int, rows: int = 8, cols: int = 12):
    """``operator`` on one stream of tiles."""
    return lambda m: m.store(operator(m.load("x", rows, cols, *inner)))


def both(operator, x: tuple[int, ...] = (8, 12), z: tuple[int, ...] = (8, 12)):
    """``operator`` on two."""
    return lambda m: m.store(operator(m.load("x", *x), m.load("z", *z)))


def kept(*args, **kwargs):
    """A streamify of buffers of 3 tiles."""
    return simple(lambda x: ops.streamify(ops.bufferize(x, rank=1, name="keep"), *args, **kwargs, name="op"), 3)


def by_reference(m: Mini) -> None:
    reference = m.load("r", 4, 4, 2)
    m.store(ops.streamify(ops.bufferize(m.load("x", 8, 12, 3), rank=1, name="keep"), reference, name="op"))


def forked(m: Mini) -> None:
    x = m.load()
    m.store(ops.map(fn.exp(), x, name="op"))
    m.store(ops.map(fn.exp(), x, name="other"))


def held_back(m: Mini) -> None:
    """A slow consumer holds back a fast one by what a link between holds."""
    x = m.load("x", 4, 4)
    m.store(ops.map(fn.exp(), x, name="op"))
    m.store(ops.flatten(ops.promote(x, name="fast"), 0, 1, name="again"))


def zipped(m: Mini) -> None:
    pairs = ops.zip(m.numbers(), m.host("z", [2] * m.n), name="op")
    m.store(ops.flat_map(fn.address_range(stride=1), pairs, name="range"), 2 * m.n)


def spread(rank: int, choose, *inner: int):
    def make(m: Mini) -> None:
        for part in ops.partition(m.load("x", 8, 12, *inner), m.selectors("to", choose), rank=rank, num_consumers=2,
                                  name="op"):
            share = sum(len(choose(i)) for i in range(m.n)) // 2
            m.store(part, share, *inner)
    return make


def gathered(rank: int, choose, *inner: int):
    def make(m: Mini) -> None:
        parts = [m.load(name, 8, 12, *inner) for name in "xz"]
        m.store(ops.reassemble(parts, m.selectors("of", choose), rank=rank, name="op"), m.n, 2, *inner)
    return make


def one_each(m: Mini) -> None:
    """One of each in turn; nothing of the other."""
    parts = [m.load(name) for name in "xz"]
    order = [{i % 2} for i in range(2 * m.n)]
    m.store(ops.reassemble(parts, m.host("of", order, Selector(2)), rank=0, name="op"), 2 * m.n, 1)


def merged(*inner: int, slow: int = 0):
    """In the order in which they come; ``slow``: FLOPs/cycle of what is before the second."""
    def make(m: Mini) -> None:
        x, z = m.load("x", 8, 12, *inner), m.load("z", 8, 12, *inner)
        if slow:
            z = ops.map(fn.exp(), z, compute_bw=slow, name="slow")
        m.store(ops.eager_merge([x, z], name="op")[0], 2 * m.n, *inner)
    return make


def scattered(rank: int, *inner: int):
    def make(m: Mini) -> None:
        places = list(range(m.n)) if not inner else [[inner[0] * i + k for k in range(inner[0])] for i in range(m.n)]
        tensor = m.program.tensor("y", (m.n * 8 * (inner or (1,))[0], 4), bf16)
        written = ops.random_offchip_store(m.host("x", places), m.load("z", 8, 4, *inner), tensor, rank=rank, name="op")
        m.store(ops.map(fn.cast(u32), written, name="number"))
    return make


def dispatched(m: Mini) -> None:
    """Requests to whichever of two regions has completed one: a loop."""
    first, count = 2, 2 * m.n
    start = m.host("start", [{0}, {1}], Selector(2))
    control = m.host("control", [{0}] * first + [{1}] * (count - first), Selector(2))
    keep = m.host("keep", [{0}] * (count - first) + [set()] * first, Selector(1))
    work = m.host("work", list(range(count)), scalar(int32))
    free = ops.feedback(Selector(2), (ragged("free"),), name="free")
    turns = ops.reassemble([start, free], control, rank=0, name="turns").assume((count, 1))
    parts = ops.partition(work, ops.flatten(turns, 0, 1, name="turn"), rank=0, name="give")
    sums = [ops.accum(fn.add(), ops.repeat(part, 8, name=f"work{i}"), rank=1, name=f"region{i}")
            for i, part in enumerate(parts)]
    data, source = ops.eager_merge(sums, name="op")
    m.store(data, count)
    free.connect(ops.partition(source.assume((count,)), keep, rank=0, name="last_ones_stop")[0])


def gathered_tiles(rows: int, cols: int):
    """A load at random."""
    def make(m: Mini) -> None:
        table = m.program.tensor("table", (rows * m.n, cols), bf16)
        m.store(ops.random_offchip_load(m.numbers(), table, (rows, cols), name="op"))
    return make


def referred(scalar_reference: bool):
    """A view for each element of a reference."""
    def make(m: Mini) -> None:
        table = m.program.tensor("table", (16, 12), bf16)
        reference = m.numbers() if scalar_reference else m.load("x", 8, 8)
        m.store(ops.linear_offchip_load(table, (8, 12), ref=reference, name="op"))
    return make


def copied(rows: int = 8, cols: int = 12, times: int = 1):
    """``times`` tensors at once."""
    def make(m: Mini) -> None:
        for k in range(times):
            m.store(m.load("op" if k == 0 else f"z{k}", rows, cols))
    return make


def on(**memory) -> HardwareConfig:
    """The same hardware with another memory."""
    return replace(HW, memory=replace(FAST, **memory))


def product(operator, rows: int | None = None, late: int | None = None, *inner: int):
    """``operator`` on an 8 x 12 (of ``rows`` valid rows) and a 12 x 16 tile; operand ``late`` of them comes out of a
    unit that takes four cycles for each of its beats, which is longer than the product where B is 12 x 8."""
    def make(m: Mini) -> None:
        a = rows_of(m, rows, *inner) if rows else m.load("x", 8, 12, *inner)
        operands = [a, m.load("z", 12, 8 if late == 0 else 16, *inner)]
        if late is not None:
            operands[late] = ops.map(fn.exp(), operands[late], name="slow")
        made = operator(*operands)
        store_rows(m, made, rows) if rows else m.store(made)
    return make


def mapped(x, z):
    return ops.map(fn.matmul(), x, z, name="op")


def folded(x, z):
    return ops.accum(fn.matmul(), x, z, rank=1, name="op")


KNOWN_LATE = "a token is pushed when its end is known, which the store then asks the memory for one by one"
def packed(way):
    """A product with tiles of 8 packed rows, which ``way`` leads there: made by rows, wanted by columns."""
    return lambda m: m.store(ops.map(fn.matmul(), way(ops.accum(
        fn.concat_rows(), m.load("x", 1, 12, 8), rank=1, name="op")), m.load("z", 12, 16), name="top"))


def multiplied_from_a_buffer(m: Mini) -> None:
    rows = ops.accum(fn.concat_rows(), m.load("x", 1, 12, 2, 8), rank=1, name="op")
    kept = ops.streamify(ops.bufferize(rows, rank=1, name="keep"), repeat=1, name="again")
    m.store(ops.accum(fn.matmul(), ops.flatten(kept, 1, 2, name="flat"), m.load("z", 12, 16, 2), rank=1, name="top"))


EVENLY = "work that waits for an operand is taken to go on evenly"

# An 8 x 12 tile has 2 x 3 beats, an elementwise function takes 4 cycles for each, all else 1.
CASES = [
    # map, by function
    Case("exp", 24, simple(lambda x: ops.map(fn.exp(), x, name="op"))),
    Case("exp, two rows a cycle", 12, simple(lambda x: ops.map(fn.exp(), x, compute_bw=8, name="op"))),
    Case("exp, two rows a cycle, of what comes slowly", 24, simple(
        lambda x: ops.map(fn.exp(), ops.map(fn.exp(), x, name="slow"), compute_bw=8, name="op")),
         late={"op": (2, 0)}, why=EVENLY, n=2),
    Case("cast", 24, simple(lambda x: ops.map(fn.cast(fp32), x, name="op"))),
    Case("add", 24, both(lambda x, z: ops.map(fn.add(), x, z, name="op"))),
    Case("add a column", 24, both(lambda x, z: ops.map(fn.add(), x, z, name="op"), z=(8, 1))),
    Case("add a row", 24, both(lambda x, z: ops.map(fn.add(), x, z, name="op"), z=(1, 12))),
    Case("multiply by a number", 24, both(lambda x, z: ops.map(fn.mul(), x, z, name="op"), z=(1, 1))),
    Case("row_sum", 6, simple(lambda x: ops.map(fn.row_sum(), x, name="op")), n=16),
    Case("row_max", 24, simple(lambda x: ops.map(fn.row_max(), x, name="op"))),
    Case("row_max of a tall tile", 24, simple(lambda x: ops.map(fn.row_max(), x, name="op"), rows=12, cols=8)),
    Case("row_max by rows", 24, both(lambda x, z: ops.map(
        fn.row_max(), ops.map(fn.add(), x, z, name="sum"), name="op"), z=(8, 1))),
    Case("row_max of dynamic rows", 24, lambda m: store_rows(m, ops.map(fn.row_max(), rows_of(m, 6), name="op"), 6)),
    Case("matmul", 24, both(lambda x, z: ops.map(fn.matmul(), x, z, name="op"), z=(12, 16))),
    Case("matmul, two groups of products", 48, both(lambda x, z: ops.map(fn.matmul(), x, z, name="op"), z=(12, 16)),
         hw=replace(on(channels=32), k_per_cycle=2)),
    Case("matmul, transposed", 24,
         both(lambda x, z: ops.map(fn.matmul(transpose_b=True), x, z, name="op"), z=(16, 12))),
    Case("matmul, A late", 24, product(mapped, None, 0)),
    Case("matmul, B late", 48, product(mapped, None, 1), late={"op": (4, 0)},
         why=EVENLY),
    Case("matmul of dynamic rows", 24, product(mapped, 6), late={"cycles": (1, 1)}, why=KNOWN_LATE),
    Case("matmul of dynamic rows, A late", 24, product(mapped, 6, 0), late={"op": (2, 0), "split": (4, 0)}, why=EVENLY),
    Case("matmul of dynamic rows, B late", 48, product(mapped, 6, 1), late={"cycles": (1, 1)}, why=KNOWN_LATE),
    Case("exp of dynamic rows", 24, lambda m: store_rows(m, ops.map(fn.exp(), rows_of(m, 6), name="op"), 6)),
    Case("set_offset", 6, lambda m: store_rows(m, rows_of(m, 6), 6), of="valid"),
    Case("selector_index", 1, lambda m: m.store(
        ops.map(fn.selector_index(), m.selectors("x", lambda i: {i % 2}), name="op"))),
    Case("scale", 1, lambda m: m.store(ops.map(fn.scale(3), m.numbers(), name="op"))),
    # accum: three elements to a group
    Case("accum of add", 72, simple(lambda x: ops.accum(fn.add(), x, rank=1, name="op"), 3)),
    Case("accum of matmul", 72, product(folded, None, None, 3)),
    Case("accum of matmul, A late", 72, product(folded, None, 0, 3)),
    Case("accum of matmul, B late", 144, product(folded, None, 1, 3)),
    Case("accum of matmul of dynamic rows", 72, product(folded, 6, None, 3), late={"cycles": (1, 1)}, why=KNOWN_LATE),
    Case("accum of matmul of dynamic rows, A late", 72, product(folded, 6, 0, 3)),
    Case("accum of matmul of dynamic rows, B late", 144, product(folded, 6, 1, 3), late={"cycles": (1, 1)},
         why=KNOWN_LATE),
    Case("accum of row_max", 72, simple(lambda x: ops.accum(fn.row_max(), x, rank=1, name="op"), 3)),
    Case("accum of row_sum", 18, simple(lambda x: ops.accum(fn.row_sum(), x, rank=1, name="op"), 3)),
    Case("accum of last", 18, simple(lambda x: ops.accum(fn.last(), x, rank=1, name="op"), 3)),
    Case("rows packed", 24, simple(lambda x: ops.accum(fn.concat_rows(), x, rank=1, name="op"), 8, rows=1)),
    *(Case(f"rows packed, {how}multiplied", 12, packed(way), of="z", n=3) for how, way in (
        ("", lambda x: x), ("handed on and ", lambda x: ops.flatten(ops.promote(x, name="one"), 0, 1, name="flat")))),
    Case("rows packed, kept and multiplied", 24, multiplied_from_a_buffer, of="z", n=3),
    Case("tiles joined below one another", 9,
         simple(lambda x: ops.accum(fn.concat_rows(), x, rank=1, name="op"), 3, rows=4),
         late={"x": (0, -1), "op": (0, -1), "cycles": (3, 3)}, why=KNOWN_LATE),
    Case("tiles joined side by side", 18, simple(lambda x: ops.accum(fn.concat_cols(), x, rank=1, name="op"), 3),
         late={"cycles": (10, 10)}, why=KNOWN_LATE),
    Case("scan", 72, simple(lambda x: ops.scan(fn.add(), x, rank=1, name="op"), 3)),
    # buffers: two passes over three tiles
    Case("streamify", 36, kept(repeat=2)),
    Case("streamify of a view", 36, kept(repeat=2, shape=(3,), stride=(1,))),
    Case("streamify by reference", 36, by_reference),
    Case("one reference: filled, read twice, three pages given back", 18 + 36 + 3, kept(repeat=2),
         hw=replace(HW, references=1)),
    # shape
    Case("repeat", 18, simple(lambda x: ops.repeat(x, 3, name="op"))),
    Case("repeat of a number", 3, lambda m: m.store(ops.repeat(m.numbers(), 3, name="op"))),
    Case("repeat of dynamic rows", 12, lambda m: store_rows(
        m, ops.flatten(ops.repeat(rows_of(m, 6), 2, name="op"), 0, 1, name="all"), 12)),
    Case("expand", 18, lambda m: m.store(ops.expand(m.load("x", 8, 12, 1), m.load("r", 4, 4, 3), rank=1, name="op"))),
    Case("flatten", 18, simple(lambda x: ops.flatten(x, 0, 1, name="op"), 3)),
    Case("flatten below a dimension", 36, simple(lambda x: ops.flatten(x, 0, 1, name="op"), 3, 2),
         late={"cycles": (4, 4)}, why=KNOWN_LATE),
    Case("flatten of numbers", 4, lambda m: m.store(ops.flatten(
        m.host("x", [[[0, 1], [2, 3]]] * m.n), 0, 1, name="op"))),
    Case("promote", 6, simple(lambda x: ops.promote(x, name="op")), late={"cycles": (4, 4)}, why=KNOWN_LATE),
    Case("promote of groups", 18, simple(lambda x: ops.promote(x, name="op"), 3), late={"cycles": (4, 4)},
         why=KNOWN_LATE),
    Case("reshape", 12, simple(lambda x: ops.reshape(x, 2, pad=0, name="op")[0], 2), of="op_data"),
    Case("reshape whose flags nobody uses, on short links", 1, lambda m: m.store(
        ops.reshape(m.numbers(), chunk=2, name="op")[0]), of="op_data", hw=replace(HW, link_depth=2), n=8),
    Case("reshape with padding", 24, simple(lambda x: ops.reshape(x, 2, pad=0, name="op")[0], 3), of="op_data"),
    Case("zip of two streams on one channel", 2, zipped),
    # routing
    Case("fork", 24, forked),
    Case("fork, held back by shallow links", 4, held_back, hw=replace(HW, link_depth=4), n=24),
    Case("partition in turn", 6, spread(0, lambda i: {i % 2}), of="op_0"),
    Case("partition to both", 12, spread(1, lambda i: {0, 1}, 2), of="op_1"),
    Case("reassemble", 12, gathered(0, lambda i: {0, 1})),
    Case("reassemble of chunks", 24, gathered(1, lambda i: {0, 1}, 2)),
    Case("reassemble one by one", 12, one_each),
    Case("eager_merge", 12, merged(), of="op_data"),
    Case("eager_merge of chunks", 24, merged(2), of="op_data"),
    Case("eager_merge, one slow", 24, merged(slow=4), of="op_data"),
    Case("a loop", 16, dispatched, of="op_data"),
    # flat_map
    Case("counter", 3, lambda m: m.store(ops.flat_map(fn.counter(), m.host("x", [3] * m.n), name="op"), 3 * m.n)),
    Case("affine addresses", 6, lambda m: m.store(
        ops.flat_map(fn.affine_addresses((3, 2), (2, 1)), m.numbers(), name="op"))),
    Case("rows split", 24, simple(lambda x: ops.flat_map(fn.split_rows(rows=1), x, name="op"))),
    Case("tiles split", 6, simple(lambda x: ops.flat_map(fn.split_rows(rows=4), x, name="op"))),
    # off-chip memory
    Case("copy", 6, copied()),
    Case("load at random", 6, gathered_tiles(8, 12)),
    Case("load of elements at random", 1, gathered_tiles(4, 4)),
    Case("store at random", 2, scattered(0)),
    Case("store of chunks at random", 4, scattered(1, 2)),
    Case("load by numbers", 12.25, referred(True)),     # a read waits for a write once in four groups
    Case("load by tiles", 12.25, referred(False)),
    Case("few channels", 18, copied(), hw=on(channels=2, interval=3)),
    Case("two copies on few channels", 36, copied(times=2), hw=on(channels=2, interval=3)),
    Case("three copies on one channel", 18, copied(4, 4, times=3), hw=on(channels=1, interval=3), n=8),
    Case("elements of four bursts on two channels", 24, copied(), hw=on(channels=2, burst_bytes=8)),
    Case("elements of two bursts on two of four channels", 6, copied(), hw=on(channels=4, burst_bytes=16)),
    Case("elements that share a burst", 6, copied(), hw=on(channels=2, burst_bytes=64)),
    Case("start-up", 6, copied(), hw=on(startup=50)),
    Case("a long way to the memory", 6, copied(), hw=on(latency=60)),
    Case("four elements in flight", 63 / 4, copied(4, 4), hw=replace(on(latency=60), load_window=4)),
    Case("banks", 6, copied(), hw=replace(HW, memory=MemoryConfig(model="banked", channels=4, capacity_bytes=1 << 22)),
         late={"op": (-3, 0)}, why="the first beat of a tile from banks is not followed, the last is"),
]


@pytest.fixture(scope="module", autouse=True)
def one_engine():
    """All operators are needed: do not compile the first case's first."""
    warm_up()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "_"))
def test_times(case: Case):
    runs = [(at_beats(case.make, n, case.hw), at_tiles(case.make, n, BeatMachine(case.hw)))
            for n in (case.n, 2 * case.n)]
    for beat, tile in runs:
        expected = {}
        for name, times in beat.streams.items():
            first, last = case.late.get(name, (0, 0))
            expected[name] = times[0] + first, times[1] + last
        assert {name: tile.streams[name] for name in expected} == expected
        assert tile.cycles == beat.cycles + case.late.get("cycles", (0, 0))[0]
        assert tile.grants == beat.grants
    for small, large in zip(*runs):
        assert large.streams[case.of][1] - small.streams[case.of][1] == case.rate * case.n
