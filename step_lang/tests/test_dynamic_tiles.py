"""Tiles whose number of rows is known at run time, in lowered programs: every logical stream is the physical one's."""

import numpy as np
import pytest

from step_lang import Program, Selector, Tile, bf16, fn, interpret, ops, ragged
from step_lang.lowering import RowTiled
from step_lang.lowering.layout import raise_tokens
from step_lang.tests.lowered import assert_lowered_equals
from step_lang.tokens import TokenStream

D = 8
"""Elements of a row."""


def _rows(p: Program, count: int) -> tuple:
    """A stream ``[count]`` of rows of a tensor of that many, and the tensor's contents."""
    x = p.tensor("x", (max(1, count), D), bf16)
    data = np.random.default_rng(count).normal(size=x.shape).astype(bf16.numpy)
    return ops.linear_offchip_load(x, (1, D), shape=(count,), stride=(1,)), data


def _groups(p: Program, sizes: list[int], tile: int) -> tuple:
    """One tile of as many rows as each of ``sizes`` (which are read from an input stream): ``[groups]`` of Tile(r, D),
    and tensors and inputs."""
    rows, data = _rows(p, sum(sizes))
    selector = ops.input_stream("to", Selector(len(sizes)), (sum(sizes),))
    chosen = [{g} for g, n in enumerate(sizes) for _ in range(n)]
    parts = ops.partition(rows, selector, rank=0, num_consumers=len(sizes))
    packed = [ops.accum(fn.concat_rows(), ops.promote(part), rank=1) for part in parts]
    return packed, {"x": data}, {"to": chosen}


@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize("sizes", [[1], [5, 0, 3], [4, 8, 1]])
def test_packed_and_split_again(tile, sizes):
    """Rows that are packed into one tile and split again are the same rows in the same order."""
    with Program("there_and_back") as p:
        packed, tensors, inputs = _groups(p, sizes, tile)
        for g, tiles in enumerate(packed):
            rows = ops.flat_map(fn.split_rows(rows=1, drop_padding=True), tiles)
            ops.linear_offchip_store(rows, p.tensor(f"y{g}", (max(1, sizes[g]), D), bf16))
    assert_lowered_equals(p, tile, tensors, inputs)
    stored = interpret(p, tensors, inputs).tensors
    for g, first in enumerate(np.cumsum([0, *sizes[:-1]])):
        assert stored[f"y{g}"][:sizes[g]].tobytes() == tensors["x"][first:first + sizes[g]].tobytes(), g


@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("sizes", [[1], [5, 0, 3], [9, 4]])
def test_matmul_in_map(tile, transposed, sizes):
    """A of dynamic rows, B of several physical tiles both ways, read again for each tile of A."""
    with Program("dynamic_map") as p:
        packed, tensors, inputs = _groups(p, sizes, tile)
        n = 3 * 4
        shape = (n, D) if transposed else (D, n)
        w = p.tensor("w", shape, bf16)
        tensors["w"] = np.random.default_rng(1).normal(size=shape).astype(bf16.numpy)
        for g, tiles in enumerate(packed):
            weights = ops.linear_offchip_load(w, shape, ref=tiles, shape=(1,), stride=(1,))
            weights = ops.flatten(weights, 0, 1) if weights.rank > tiles.rank else weights
            product = ops.map(fn.matmul(transpose_b=transposed), tiles, weights)
            done = ops.map(fn.silu(), ops.map(fn.cast(dtype="bf16"), product))
            rows = ops.flat_map(fn.split_rows(rows=1, drop_padding=True), done)
            ops.linear_offchip_store(rows, p.tensor(f"y{g}", (max(1, sizes[g]), n), bf16))
    assert_lowered_equals(p, tile, tensors, inputs)


@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize("sizes", [[1], [5, 0, 3], [9, 4]])
def test_expert(tile, sizes):
    """The body of an expert: x repeated for the steps of F, gate and up, down accumulated over F."""
    steps, part = 3, 8
    rng = np.random.default_rng(2)
    with Program("expert") as p:
        packed, tensors, inputs = _groups(p, sizes, tile)
        for name, shape in (("gate", (D, steps * part)), ("up", (D, steps * part)), ("down", (steps * part, D))):
            p.tensor(name, shape, bf16)
            tensors[name] = rng.normal(size=shape).astype(bf16.numpy)
        for g, tiles in enumerate(packed):
            x = ops.repeat(tiles, steps)
            gate = ops.linear_offchip_load(p.tensors["gate"], (D, part), ref=tiles, shape=(steps,), stride=(1,))
            up = ops.linear_offchip_load(p.tensors["up"], (D, part), ref=tiles, shape=(steps,), stride=(1,))
            down = ops.linear_offchip_load(p.tensors["down"], (part, D), ref=tiles, shape=(steps,), stride=(1,))
            a = ops.map(fn.silu(), ops.map(fn.cast(dtype="bf16"), ops.map(fn.matmul(), x, gate)))
            b = ops.map(fn.cast(dtype="bf16"), ops.map(fn.matmul(), x, up))
            y = ops.accum(fn.matmul(), ops.map(fn.mul(), a, b), down, rank=1)
            rows = ops.flat_map(fn.split_rows(rows=1, drop_padding=True), ops.map(fn.cast(dtype="bf16"), y))
            ops.linear_offchip_store(rows, p.tensor(f"y{g}", (max(1, sizes[g]), D), bf16))
    assert_lowered_equals(p, tile, tensors, inputs)


@pytest.mark.parametrize("tile", [2, 4])
def test_operands_that_are_broadcast(tile):
    """A scalar, a row and a column of the tile's own height, over tiles of dynamic rows; sums along rows."""
    sizes = [3, 6]
    rng = np.random.default_rng(3)
    with Program("broadcast") as p:
        packed, tensors, inputs = _groups(p, sizes, tile)
        p.tensor("row", (1, D), bf16)
        tensors["row"] = rng.normal(size=(1, D)).astype(bf16.numpy)
        for g, tiles in enumerate(packed):
            row = ops.flatten(ops.linear_offchip_load(p.tensors["row"], (1, D), ref=tiles, shape=(1,), stride=(1,)),
                              0, 1)
            one = ops.map(fn.mul(), tiles, row)
            column = ops.map(fn.row_max(), one)
            two = ops.map(fn.sub(), one, column)
            rows = ops.flat_map(fn.split_rows(rows=1, drop_padding=True), two)
            ops.linear_offchip_store(rows, p.tensor(f"y{g}", (sizes[g], D), bf16))
    assert_lowered_equals(p, tile, tensors, inputs)


@pytest.mark.parametrize("tile", [2, 4, 8])
@pytest.mark.parametrize("count", [1, 4, 7, 8])
def test_padding_trimmed(tile, count):
    """Rows packed into static tiles with padding, whose last rows are taken off again (the paper's figure 7); at T = 8
    a tile is a physical tile that is not full."""
    chunk = 4
    with Program("static_tiles") as p:
        rows, data = _rows(p, count)
        rows = rows.assume((count,))
        chunks, flags = ops.reshape(rows, chunk, pad=0)
        tiles = ops.accum(fn.concat_rows(), chunks, rank=1)
        pads = ops.accum(fn.add(), ops.map(fn.cast(dtype="u32"), flags), rank=1)
        tiles = ops.map(fn.add(), tiles, ops.map(fn.row_max(), tiles))
        left = ops.map(fn.set_offset(padding=True), ops.map(fn.silu(), tiles), pads)
        done = ops.flat_map(fn.split_rows(rows=1, drop_padding=True), left)
        ops.linear_offchip_store(done, p.tensor("y", (count, D), bf16))
    assert_lowered_equals(p, tile, {"x": data})


def test_split_into_larger_pieces():
    """A static tile in pieces of whole physical tiles: the same tiles in smaller grids."""
    with Program("pieces") as p:
        x = p.tensor("x", (16, D), bf16)
        pieces = ops.flat_map(fn.split_rows(rows=4), ops.linear_offchip_load(x, (8, D), shape=(2,), stride=(1,)))
        ops.linear_offchip_store(pieces, p.tensor("y", (16, D), bf16))
    data = np.arange(16 * D).reshape(16, D).astype(bf16.numpy)
    assert_lowered_equals(p, 2, {"x": data})


def test_layout_of_dynamic_rows():
    """2 logical tiles of 3 and 0 rows, T = 2: 2 and 1 rows of physical tiles."""
    layout = RowTiled(Tile(ragged("r"), 4, bf16), ragged("n"), 2)
    parts = [np.full((rows, 2), i, dtype=bf16.numpy) for i, rows in enumerate((2, 2, 1, 1, 0, 0))]
    raised = raise_tokens(TokenStream(2, [0, 1, 0, 2, 0, 2], [False] * 6, parts), layout)
    assert [len(tile) for tile in raised.data] == [3, 0] and raised.stop.tolist() == [0, 0]
    assert raised.data[0].astype(int).tolist() == [[0, 0, 1, 1], [0, 0, 1, 1], [2, 2, 3, 3]]
