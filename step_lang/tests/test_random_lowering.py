"""Random access and address functions in lowered programs: the same program, tile by physical tile."""

from __future__ import annotations

import numpy as np
import pytest

from step_lang import Program, Selector, Tile, bf16, fn, int32, ops, ragged, scalar, u32
from step_lang.errors import BadParameter, UnknownFunction
from step_lang.lowering import lower
from step_lang.tests.lowered import assert_lowered_equals

U32 = scalar(u32)
SHAPES = {   # tensor, tile of T = 2
    "one tile wide": ((24, 4), (4, 4)),
    "one physical row high": ((6, 16), (2, 8)),
    "one physical tile": ((6, 8), (2, 2)),
    "rows": ((5, 8), (1, 4)),
    "columns": ((6, 4), (2, 1)),
    "tall columns": ((12, 1), (4, 1)),
    "scalars": ((5, 3), (1, 1)),
}
NESTED = [[0, 2], [], [1, 1, 0]]


def contents(shape, dtype=bf16, seed=0):
    generator = np.random.default_rng(seed)
    if dtype.is_float:
        return generator.standard_normal(shape).astype(dtype.numpy)
    return generator.integers(0, 99, shape).astype(dtype.numpy)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("order", ["row", "col"])
def test_load(shape, order):
    """In both orders: the consumer, a product's operand, asks for one."""
    size, tile = SHAPES[shape]
    with Program("p") as p:
        w = p.tensor("w", size, bf16)
        addr = ops.input_stream("addr", U32, (ragged("m"), ragged("n")))
        loaded = ops.random_offchip_load(addr, w, tile, name="load")
        out = p.tensor("out", (5 * tile[0], tile[1]), bf16)
        if order == "row" and tile != (1, 1):
            flat = ops.flatten(loaded, 0, 1)
            scaled = ops.map(fn.mul(), flat, ops.map(fn.row_max(), flat))   # asks for row order
            ops.linear_offchip_store(scaled, p.tensor("scaled", (5 * tile[0], tile[1]), bf16))
        ops.linear_offchip_store(loaded, out)
    lowered = assert_lowered_equals(p, 2, {"w": contents(size)}, {"addr": NESTED})
    kinds = [op.kind for op in lowered.program.operators]
    assert kinds.count("flat_map") == (shape != "scalars")
    if 1 not in tile:
        assert lowered.placed["load"][0].order == order


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("acknowledged", [True, False])
def test_store(shape, acknowledged):
    """Tiles to given places; the last of several for one place stays; one acknowledgement for a logical tile."""
    size, tile = SHAPES[shape]
    with Program("p") as p:
        w = p.tensor("w", size, bf16)
        dims = (ragged("m"), ragged("n"))
        addr = ops.input_stream("addr", U32, dims)
        data = ops.input_stream("data", Tile(*tile, bf16), dims)
        ack = ops.random_offchip_store(addr, data, w, name="store")
        if acknowledged:
            ops.linear_offchip_store(ops.map(fn.cast(u32), ack), p.tensor("acks", (5, 1), u32))
    count = iter(range(9))
    values = [[contents(tile, seed=next(count)) for _ in row] for row in NESTED]
    lowered = assert_lowered_equals(p, 2, {"w": contents(size)}, {"addr": NESTED, "data": values})
    store = next(op for op in lowered.program.operators if op.kind == "random_offchip_store")
    assert store.rank == (0 if shape == "scalars" else 2)


def test_acknowledgements_of_chunks():
    with Program("p") as p:
        addr = ops.input_stream("addr", U32, (ragged("m"), 2, 3))
        ack = ops.random_offchip_store(addr, addr, p.tensor("t", (64, 1), u32), rank=1)
        assert ack.shape == addr.shape[:2]
        ops.linear_offchip_store(ops.map(fn.cast(u32), ack), p.tensor("acks", (4, 1), u32))
    assert_lowered_equals(p, 2, {}, {"addr": [[[1, 2, 3], [4, 5, 6]], [[7, 8, 9], [10, 11, 12]]]})
    with Program("q") as q:
        addr = ops.input_stream("addr", U32, (2, ragged("n")))
        with pytest.raises(BadParameter, match=r"rank: 1 vs a number of inner dimensions of \[2, .*\] that are static"):
            ops.random_offchip_store(addr, addr, q.tensor("t", (64, 1), u32), rank=1)


def test_gather_by_ranges_and_counts():
    """Address functions steer loads; zero counts make empty rows."""
    with Program("p") as p:
        w = p.tensor("w", (16, 4), int32)
        dims = (ragged("m"), ragged("n"))
        start, count = (ops.input_stream(name, U32, dims) for name in ("start", "count"))
        ranges = ops.flat_map(fn.address_range(stride=2), ops.zip(start, count), name="ranges")
        counts = ops.flat_map(fn.counter(), count, name="counts")
        blocks = ops.flat_map(fn.affine_addresses((2, 3), scale=2, base=1), count, name="blocks")
        for i, addr in enumerate((ranges, counts)):
            ops.linear_offchip_store(ops.random_offchip_load(addr, w, (2, 4), name=f"load{i}"),
                                     p.tensor(f"y{i}", (20, 4), int32))
        ops.linear_offchip_store(blocks, p.tensor("z", (64, 1), u32))
    given = {"start": [[0, 1], [5], [3, 1]], "count": [[2, 0], [0], [1, 3]]}
    assert_lowered_equals(p, 2, {"w": contents((16, 4), int32)}, given)


def test_weights_of_the_expert_that_a_selector_names():
    with Program("p") as p:
        x, w = p.tensor("x", (8, 4), bf16), p.tensor("w", (3 * 4, 4), bf16)
        selector = ops.input_stream("selector", Selector(3), (4,))
        rows = ops.linear_offchip_load(x, (2, 4), shape=(4,), stride=(1,))
        weights = ops.random_offchip_load(ops.map(fn.selector_index(), selector), w, (4, 4), name="weights")
        ops.linear_offchip_store(ops.map(fn.cast("bf16"), ops.map(fn.matmul(), rows, weights)),
                                 p.tensor("y", (8, 4), bf16))
    assert_lowered_equals(p, 2, {"x": contents((8, 4)), "w": contents((12, 4), seed=1)},
                          {"selector": [{2}, {0}, {1}, {2}]})


def test_a_tensor_that_has_no_affine_numbers_is_refused():
    with Program("p") as p:
        w = p.tensor("w", (12, 8), bf16)
        addr = ops.input_stream("addr", U32, (2,))
        ops.linear_offchip_store(ops.random_offchip_load(addr, w, (4, 4), name="load"), p.tensor("y", (8, 4), bf16))
    with pytest.raises(BadParameter, match=r"'load'.*tiles of 4 x 4 in a grid of 3 x 2 of tensor 'w', at random: 2 "
                       r"physical tiles high and 2 to a row vs one of the two; fix: keep the tensor one tile wide, as "
                       r"24 x 4, or use tiles of 2 rows instead of 4"):
        lower(p, 2)


def test_other_pieces_are_refused_by_name():
    with Program("p") as p:
        x = ops.input_stream("x", Tile(6, 4, bf16), (2,))
        ops.linear_offchip_store(ops.flat_map(fn.split_rows(4), x, name="split"), p.tensor("y", (16, 4), bf16))
    with pytest.raises(UnknownFunction, match=r"'split'.*split_rows\(rows=4\) of Tile\(6, 4, bf16\) vs"):
        lower(p, 2)
