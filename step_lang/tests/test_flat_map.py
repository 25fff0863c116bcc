"""flat_map and the functions for it against nested lists; functions that change how many rows a tile has."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from step_lang import (
    BadParameter,
    Program,
    ShapeMismatch,
    StepError,
    StreamProtocolError,
    Tile,
    TokenStream,
    Tuple,
    TypeMismatch,
    UnknownFunction,
    ViewOutOfRange,
    bf16,
    fn,
    int32,
    interpret,
    metrics,
    ops,
    ragged,
    scalar,
    u32,
)
from step_lang.fn.piece import PieceFunction
from step_lang.interpreter import measure_symbols
from step_lang.tests.nested import flat, map_level, nested_streams
from step_lang.tests.test_routing import in_steps
from step_lang.tests.test_worked_examples import run

SETTINGS = settings(max_examples=150, deadline=None)
U32 = scalar(u32)


class Rows(PieceFunction):
    """n as n rows (n, 7): a function of rank 1 that may make nothing."""

    name = "rows"

    def piece_type(self, type_):
        return U32

    def piece_shape(self, type_):
        return (None, 2)

    def pieces(self, numerics, data, type_):
        counts = data.reshape(-1).astype(np.int64)
        numbers = [value for n in counts.tolist() for _ in range(n) for value in (n, 7)]
        return counts, np.array(numbers, dtype=np.uint32).reshape(-1, 1, 1)


def apply(function, type_, rank, nested, shapes_hold=True):
    """Tokens of flat_map, whole and in steps, shapes and counts having been checked at run time."""
    with Program("p") as program:
        x = ops.input_stream("x", type_, tuple(ragged(f"d{k}") for k in range(rank + 1)))
        out = ops.flat_map(function, x)
    tokens = TokenStream.from_nested(nested, rank, type_)
    values = run(program, {"x": tokens})
    if shapes_hold:
        symbols = measure_symbols(program, values)
        assert int(out.elements.subs(symbols)) == values[out.name].elements
    else:
        with pytest.raises(ShapeMismatch, match="D_0 is 0 at run time vs 2"):
            measure_symbols(program, values)
    for seed in range(3):
        assert in_steps(out.producer, [tokens], {}, Random(seed))[0] == [values[out.name]]
    return values[out.name]


@SETTINGS
@given(nested_streams())
def test_counter(sample):
    rank, nested = sample
    nested = map_level(lambda vector: [v % 4 for v in vector], nested, rank)
    expected = map_level(lambda vector: [i for n in vector for i in range(n)], nested, rank)
    assert apply(fn.counter(), U32, rank, nested).to_nested() == expected


@SETTINGS
@given(nested_streams())
def test_rank_1_function(sample):
    rank, nested = sample
    nested = map_level(lambda vector: [v % 3 for v in vector], nested, rank)

    def rows(vector):
        # A last element that makes nothing, or an empty vector, leaves a bare stop, which reads as an empty row.
        made = [[n, 7] for n in vector for _ in range(n)]
        return [*made, []] if rank and (not vector or vector[-1] == 0) else made

    # Behind other rows that is one row too many for the shape, which the run-time check says.
    vectors = flat(nested, rank - 1) if rank else []
    hold = not any(sum(vector) and vector[-1] == 0 for vector in vectors)
    assert apply(Rows(), U32, rank, nested, hold).to_nested() == map_level(rows, nested, rank)


@SETTINGS
@given(nested_streams(0, 2), st.integers(-2, 3))
def test_address_range(sample, stride):
    rank, nested = sample
    pairs = map_level(lambda vector: [(50 + v, abs(v) % 4) for v in vector], nested, rank)
    expected = map_level(lambda vector: [a + i * stride for a, n in vector for i in range(n)], pairs, rank)
    assert apply(fn.address_range(stride=stride), Tuple((U32, U32)), rank, pairs).to_nested() == expected


@SETTINGS
@given(nested_streams(0, 2), st.lists(st.integers(1, 3), min_size=1, max_size=3), st.integers(0, 5), st.data())
def test_affine_addresses(sample, shape, scale, data):
    rank, nested = sample
    nested = map_level(lambda vector: [v + 9 for v in vector], nested, rank)
    stride = data.draw(st.none() | st.lists(st.integers(0, 9), min_size=len(shape), max_size=len(shape)))
    strides = stride if stride is not None else [int(np.prod(shape[k + 1:])) for k in range(len(shape))]

    def blocks(vector):
        made = []
        for v in vector:
            grid = 4 + v * scale + sum(np.indices(shape)[k] * strides[k] for k in range(len(shape)))
            made.extend(grid.tolist())
        empty: list = []
        for _ in range(len(shape) - 1):
            empty = [empty]
        return made or (empty if rank else [])

    found = apply(fn.affine_addresses(shape, stride, scale=scale, base=4), U32, rank, nested)
    assert found.to_nested() == map_level(blocks, nested, rank)


def test_static_pieces_keep_static_shapes():
    with Program("p"):
        x = ops.input_stream("x", U32, (ragged("r"), 5))
        assert ops.flat_map(fn.affine_addresses((3, 4)), x).shape == (x.shape[0], 15, 4)
        tiles = ops.input_stream("tiles", Tile(8, 4, bf16), (2, 5))
        split = ops.flat_map(fn.split_rows(rows=2), tiles)
        assert split.shape == (2, 20) and split.type == Tile(2, 4, bf16)
        again = ops.flat_map(fn.counter(), x)
        assert again.shape == ops.flat_map(fn.counter(), x).shape != x.shape


def test_a_dynamic_load():
    """Requests of different lengths read their tiles: addresses by flat_map, traffic as its expression says."""
    with Program("p") as p:
        start, count = (ops.input_stream(name, U32, (3,)) for name in ("start", "count"))
        requests = ops.repeat(ops.zip(start, count), 1)
        addr = ops.flat_map(fn.address_range(), requests)
        tiles = ops.random_offchip_load(addr, p.tensor("t", (10, 4), bf16), (1, 4), name="load")
        sums = ops.accum(fn.add(), tiles, rank=1)
        ops.linear_offchip_store(sums, p.tensor("y", (3, 4), bf16))
    table = np.arange(40).reshape(10, 4).astype(bf16.numpy)
    result = interpret(p, {"t": table}, {"start": [2, 0, 9], "count": [3, 0, 1]})
    expected = np.array([table[2:5].astype(np.float32).sum(axis=0), np.zeros(4), table[9]], dtype=np.float32)
    assert np.array_equal(result.tensors["y"].astype(np.float32), expected)
    found = metrics(p).substitute(result.symbols)
    assert found.offchip_read_bytes == result.offchip_read_bytes == 4 * 8 + 2 * 3 * 4
    assert result.rows["load"]["offchip_read_bytes"] == 4 * 8


# Rows of tiles


@SETTINGS
@given(nested_streams(0, 2), st.integers(1, 3), st.booleans(), st.data())
def test_split_rows(sample, rows, drop, data):
    rank, nested = sample
    sizes = map_level(lambda vector: [data.draw(st.integers(0, 5)) for _ in vector], nested, rank)
    numbers = iter(range(10000))
    tiles = map_level(lambda vector: [np.array([[next(numbers)] * 2 for _ in range(n)], np.int32).reshape(n, 2)
                                      for n in vector], sizes, rank)

    def split(vector):
        made = []
        for tile in vector:
            for first in range(0, len(tile), rows):
                part = tile[first:first + rows].tolist()
                made.append(part if drop else part + [[0, 0]] * (rows - len(part)))
        return made

    found = apply(fn.split_rows(rows=rows, drop_padding=drop), Tile(ragged("n"), 2, int32), rank, tiles)
    values = [np.asarray(tile).tolist() for tile in found.data]
    assert found.to_nested(values) == map_level(split, tiles, rank)


@pytest.mark.parametrize("chunk", [2, 3, 4])
def test_pack_and_unpack(chunk):
    """Rows packed into tiles of ``chunk`` rows, padding marked and dropped again: the rows, as they were."""
    groups = [[1, 2, 3], [4], [5, 6, 7, 8]]
    with Program("p") as p:
        x = ops.input_stream("x", Tile(1, 2, int32), (3, ragged("r")))
        data, padding = ops.reshape(x, chunk, pad=-1)
        tiles = ops.accum(fn.concat_rows(), data, rank=1)
        padded = ops.accum(fn.add(), ops.map(fn.cast(u32), padding), rank=1)
        valid = ops.map(fn.set_offset(padding=True), tiles, padded)
        rows = ops.flat_map(fn.split_rows(), valid)
        ops.linear_offchip_store(rows, p.tensor("y", (8, 2), int32))
    values = [[np.full((1, 2), v, np.int32) for v in group] for group in groups]
    result = interpret(p, {}, {"x": values})
    assert result.tensors["y"].tolist() == [[v, v] for v in range(1, 9)]
    # reshape ends a vector's last chunk with it, so the rows are in their groups again.
    found = result.stream(rows)
    assert found.to_nested([int(tile[0, 0]) for tile in found.data]) == groups


def test_set_offset():
    tiles = np.arange(24, dtype=np.int32).reshape(3, 4, 2)
    counts = np.array([0, 4, 3], dtype=np.uint32).reshape(3, 1, 1)
    for padding in (False, True):
        found = fn.set_offset(padding=padding).apply(None, tiles, counts)
        assert [part.tolist() for part in found] == [
            tile[:4 - n if padding else n].tolist() for tile, n in zip(tiles, (0, 4, 3))]
    assert fn.set_offset().result_type(Tile(4, 2, int32), U32).cols == 2
    with pytest.raises(StreamProtocolError, match="tile 1: 5 rows vs a tile of 4"):
        fn.set_offset().apply(None, tiles, counts + np.uint32(1))
    with pytest.raises(TypeMismatch, match=r"Tile\(1, 1, int32\) vs Tile\(1, 1, u32\)"):
        fn.set_offset().result_type(Tile(4, 2, int32), scalar(int32))


def test_append_row():
    """A cache: tiles of run-time length get one more row each."""
    with Program("p") as p:
        tiles = ops.input_stream("tiles", Tile(4, 2, int32), (3,))
        lengths = ops.input_stream("lengths", U32, (3,))
        row = ops.input_stream("row", Tile(1, 2, int32), (3,))
        longer = ops.map(fn.append_row(capacity=4), ops.map(fn.set_offset(), tiles, lengths), row, name="append")
        ops.linear_offchip_store(ops.flat_map(fn.split_rows(), longer), p.tensor("y", (12, 2), int32))
    cache = [np.arange(8 * i, 8 * i + 8, dtype=np.int32).reshape(4, 2) for i in range(3)]
    new = [np.full((1, 2), -i, np.int32) for i in range(3)]
    result = interpret(p, {}, {"tiles": cache, "lengths": [0, 2, 3], "row": new})
    expected = np.concatenate([new[0], cache[1][:2], new[1], cache[2][:3], new[2]])
    assert np.array_equal(result.tensors["y"][:8], expected) and not result.tensors["y"][8:].any()
    with pytest.raises(StreamProtocolError, match=r"map 'append' \(test_flat_map.py:\d+\): append_row: 5 rows vs cap"):
        interpret(p, {}, {"tiles": cache, "lengths": [0, 2, 4], "row": new})


def test_types_of_append_row():
    f = fn.append_row(capacity=4)
    assert f.result_type(Tile(3, 2, int32), Tile(1, 2, int32)) == Tile(4, 2, int32)
    for tile, row, text in ((Tile(4, 2, int32), Tile(1, 2, int32), "5 rows vs capacity 4"),
                            (Tile(3, 2, int32), Tile(2, 2, int32), "vs a tile of 1 row"),
                            (Tile(3, 2, int32), Tile(1, 2, bf16), "vs a tile of 1 row of int32"),
                            (Tile(3, 2, int32), Tile(1, 3, int32), "cols: 2 vs 3")):
        with pytest.raises(StepError, match=text):
            f.result_type(tile, row)


# Mistakes


def test_mistakes():
    def message(error, call):
        with pytest.raises(error) as caught:
            call()
        return str(caught.value)

    with Program("p"):
        x = ops.input_stream("x", U32, (4,))
        y = ops.input_stream("y", scalar(int32), (4,))
        text = message(UnknownFunction, lambda: ops.flat_map(fn.add(), x, name="expand_x"))
        assert text.startswith("flat_map 'expand_x' (test_flat_map.py:") and "use map" in text
        assert "apply it with flat_map" in message(UnknownFunction, lambda: ops.map(fn.counter(), x))
        assert "can fold" in message(UnknownFunction, lambda: ops.accum(fn.counter(), ops.repeat(x, 1), rank=1))
        assert "counter of Tile(1, 1, int32)" in message(TypeMismatch, lambda: ops.flat_map(fn.counter(), y))
        assert "zip the two" in message(TypeMismatch, lambda: ops.flat_map(fn.address_range(), x))
        assert "takes tiles" in message(
            TypeMismatch, lambda: ops.flat_map(fn.split_rows(), ops.zip(x, x)))
        assert "of Tile(1, 1, int32)" in message(TypeMismatch, lambda: ops.flat_map(fn.affine_addresses((2,)), y))
        assert "0 vs an int of at least 1" in message(
            BadParameter, lambda: ops.flat_map(fn.counter(), x, compute_bw=0))
    with Program("p") as p:
        x = ops.input_stream("x", U32, (4,))
        wide = ops.flat_map(fn.affine_addresses((2,), scale=1 << 31), x, name="wide")
        ops.linear_offchip_store(wide, p.tensor("z", (8, 1), u32))
    text = message(ViewOutOfRange, lambda: interpret(p, {}, {"x": [0, 1, 2, 3]}))
    assert text.startswith("flat_map 'wide' (test_flat_map.py:") and "address 4294967296 vs 0..4294967295" in text
    for make in (lambda: fn.split_rows(rows=0), lambda: fn.affine_addresses(()), lambda: fn.affine_addresses((2, 0)),
                 lambda: fn.affine_addresses((2,), (1, 1)), lambda: fn.address_range(stride=1.5),
                 lambda: fn.append_row(capacity=0), lambda: fn.affine_addresses((2,), base="x")):
        assert " vs " in message(BadParameter, make)
