"""Folds into a state whose outermost dimension is ragged, hollow folds, tiles of varying size, and the last element."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from step_lang import (
    BadParameter,
    Numerics,
    Program,
    StreamProtocolError,
    Tile,
    TokenStream,
    bf16,
    dynamic,
    fn,
    int32,
    interpret,
    metrics,
    ops,
    parse_tokens,
    ragged,
    scalar,
    u32,
)
from step_lang.picture import render
from step_lang.tokens import data_from_values

D, R, ROWS = dynamic("D"), ragged("R"), ragged("rows")
NUMBER = scalar(int32)
SETTINGS = settings(deadline=None, max_examples=60, derandomize=True)


def folded(tokens, shape, type_=NUMBER, function=None, kind=ops.accum, **options):
    """(tokens that the fold gives, the program, the whole result)."""
    with Program("p") as p:
        y = kind(function or fn.add(), ops.input_stream("x", type_, shape), name="fold", **options)
    y.optional = True
    result = interpret(p, {}, {"x": tokens}, numerics=Numerics(group=2))
    return result.stream(y), p, result


@SETTINGS
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 2)), max_size=4), st.integers(1, 3),
       st.integers(1, 2))
def test_open_state_against_numpy(groups, n0, c):
    """Groups of a x b tensors of n1 (x n0) elements each; two dimensions folded."""
    if c == 1:
        n0 = 1
    rng = np.random.default_rng(len(groups))
    numbers = [rng.integers(-9, 9, (a, b, n1, n0)[:2 + c]) for n1, a, b in groups]
    shape = (ragged("g"), ragged("a"), ragged("b"), R, n0)[:3 + c]
    tokens = TokenStream.from_nested([group.tolist() for group in numbers], 2 + c)
    got, _, result = folded(tokens, shape, rank=2, inner=c, init=3)
    assert got == TokenStream.from_nested([(3 + group.sum(axis=(0, 1))).tolist() for group in numbers], c)
    largest = [value for symbol, value in result.symbols.items() if str(symbol) == "#largest[R]"]
    assert largest == [max((n1 for n1, _, _ in groups), default=0)]


@SETTINGS
@given(st.lists(st.one_of(st.none(), st.tuples(st.integers(1, 3), st.integers(1, 3))), max_size=5), st.booleans())
def test_hollow_against_lists(groups, is_open):
    """A vector of groups that is None has none: it leaves as a bare stop."""
    shape = (D, R, ragged("K"), ragged("I") if is_open else 2)
    numbers = [np.ones((0, 1, 1), int) if group is None else np.arange(group[0] * (group[1] if is_open else 2)).reshape(
        1, group[0], -1) for group in groups]
    tokens = TokenStream.from_nested([vector.tolist() for vector in numbers], 3)
    expected = TokenStream.from_nested([vector.sum(axis=1).tolist() for vector in numbers], 2)
    assert folded(tokens, shape, rank=1, inner=1, hollow=True)[0] == expected


def test_worked_hollow():
    tokens = parse_tokens("1 2 S1 3 4 S3 S3 5 6 S3 S4 D")
    for size in (2, R):
        got, _, _ = folded(tokens, (D, ragged("n"), ragged("m"), ragged("k"), size), rank=1, inner=1, hollow=True)
        assert got == parse_tokens("4 6 S2 S2 5 6 S2 S3 D")


@pytest.mark.parametrize("text, shape, words", [
    ("1 2 S1 3 S2 D", (D, ragged("k"), R), "tensor 1 of group 0: 1 elements vs 2 of the group's first"),
    ("1 S2 2 S1 3 4 S2 D", (D, ragged("k"), R), "tensor 1 of group 1: 2 elements vs 1 of the group's first"),
    ("1 2 S2 S2 D", (D, ragged("k"), R), "group 1: no element vs at least one"),
    ("1 2 S1 S2 D", (D, ragged("k"), ragged("m")), None),
    ("1 2 S1 S1 3 4 S2 D", (D, ragged("k"), R), "an incomplete inner tensor"),
    ("1 2 S1 3 S3 D", (D, ragged("k"), R, 2), "element 2: stop 3 vs 0 at position 2 of inner shape"),
    ("1 2 3 S3 D", (D, ragged("k"), R, 2), "element 1: stop 0 vs 1 at position 1"),
    ("1 2 S1 S3 D", (D, ragged("k"), R, 2), "an incomplete inner tensor"),
])
def test_open_errors(text, shape, words):
    run = lambda: folded(parse_tokens(text), shape, rank=1, inner=len(shape) - 2)  # noqa: E731
    if words is None:  # a vector that is empty behind the tensors closes their group
        assert run()[0] == parse_tokens("1 2 S1 D")
        return
    with pytest.raises(StreamProtocolError) as caught:
        run()
    assert words in str(caught.value) and "accum 'fold' (test_folds.py:" in str(caught.value)


def tiles(sizes, cols=2, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(-4, 5, (rows, cols)).astype(np.float32).astype(bf16.numpy) for rows in sizes]


def stream_of(values, stops, rank, type_):
    return TokenStream(rank, stops, [False] * len(stops), data_from_values(values, type_))


@pytest.mark.parametrize("sizes", [[4, 4, 3], [4, 0], [1], [0], [2, 2]])
def test_matmul_of_varying_rows(sizes):
    """An open state of tiles: every one has the rows of what is folded into it."""
    depth, type_ = 3, Tile(ROWS, 2, bf16)
    count = len(sizes)
    parts = [tiles(sizes, seed=k) for k in range(depth)]
    weights = tiles([2] * depth, seed=9)
    stops = [0] * (count * depth)
    stops[count - 1::count] = [1] * (depth - 1) + [2]
    with Program("p") as p:
        a = ops.input_stream("a", type_, (D, depth, R))
        b = ops.input_stream("b", Tile(2, 2, bf16), (D, depth, R))
        c = ops.accum(fn.matmul(), a, b, rank=1, inner=1, name="product")
        maximum = ops.map(fn.row_max(), ops.map(fn.cast(dtype="bf16"), c), name="largest")
    maximum.optional = True
    given = {"a": stream_of([tile for part in parts for tile in part], stops, 2, type_),
             "b": stream_of([w for w in weights for _ in range(count)], stops, 2, Tile(2, 2, bf16))}
    result = interpret(p, {}, given)
    expected = [sum(part[i].astype(np.float32) @ w.astype(np.float32) for part, w in zip(parts, weights, strict=True))
                for i in range(count)]
    got = result.stream(c)
    assert got.stop.tolist() == [0] * (count - 1) + [1] and str(c.type) == "Tile(rows, 2, fp32)"
    for tile, want in zip(got.data, expected, strict=True):
        assert tile.shape == want.shape and np.array_equal(tile, want)
    assert [tile.shape for tile in result.stream(maximum).data] == [(rows, 1) for rows in sizes]
    assert result.flops == sum(sizes) * (depth * 2 * 2 * 2 + 2 + 2)


def test_tiles_of_one_state_have_one_size():
    for sizes in ([2, 3], [2, 3, 2]):
        x = stream_of(tiles(sizes), [0] * (len(sizes) - 1) + [1], 1, Tile(ROWS, 2, bf16))
        with pytest.raises(StreamProtocolError, match=r"element 1: folded into a state of 3 x 2 vs one of 2 x 2"):
            folded(x, (D, R), Tile(ROWS, 2, bf16), rank=1)


@pytest.mark.parametrize("sizes", [[2, 2], [2, 3]])
def test_initial_state_of_dynamic_rows_is_one_row(sizes):
    """Whatever sizes the other groups have."""
    type_ = Tile(ROWS, 2, int32)
    x = TokenStream(1, [1, 1, 1], [False, True, False], data_from_values([np.ones((n, 2), np.int32) for n in sizes],
                                                                        type_))
    got, _, _ = folded(x, (D, R), type_, rank=1, init=7)
    assert [tile.tolist() for tile in got.data] == [[[8, 8]] * sizes[0], [[7, 7]], [[8, 8]] * sizes[1]]


@pytest.mark.parametrize(("init", "told"), [(-1, "init of add: -1 vs 0..4294967295"), (0.5, "0.5 vs an integer")])
@pytest.mark.parametrize("fold", [ops.accum, ops.scan])
def test_an_initial_state_is_checked_when_the_operator_is_made(fold, init, told):
    with Program("p"):
        x = ops.input_stream("x", scalar(u32), (D, R))
        with pytest.raises(BadParameter, match=rf"{fold.__name__} 'sum' \(.*{told}"):
            fold(fn.add(), x, rank=1, init=init, name="sum")


def test_depth_may_vary():
    """What is summed over may differ from element to element."""
    a = [np.ones((2, k)).astype(bf16.numpy) for k in (1, 3)]
    b = [np.ones((k, 2)).astype(bf16.numpy) for k in (1, 3)]
    with Program("p") as p:
        x = ops.input_stream("a", Tile(2, ROWS, bf16), (D, R))
        y = ops.input_stream("b", Tile(ROWS, 2, bf16), (D, R))
        c = ops.accum(fn.matmul(), x, y, rank=1)
    c.optional = True
    result = interpret(p, {}, {"a": stream_of(a, [0, 1], 1, x.type), "b": stream_of(b, [0, 1], 1, y.type)})
    assert np.array_equal(result.stream(c).data[0], np.full((2, 2), 4, np.float32))


def test_varying_tiles_are_folded_many_at_once():
    """As fast as it has to be: 20,000 tiles of two sizes in well under a call for each."""
    sizes = np.random.default_rng(1).integers(1, 3, 2000)
    values = [np.ones((rows, 2), np.int32) for rows in sizes for _ in range(10)]
    x = stream_of(values, ([0] * 9 + [1]) * 2000, 1, Tile(ROWS, 2, int32))
    started = time.perf_counter()
    got, _, _ = folded(x, (D, R), Tile(ROWS, 2, int32), rank=1)
    assert time.perf_counter() - started < 3
    assert [tile.tolist() for tile in got.data] == [[[10, 10]] * rows for rows in sizes]


def test_last():
    got, _, _ = folded(parse_tokens("1 2 S1 S1 3 S2 D"), (D, ragged("n"), R), function=fn.last(), rank=1)
    assert got == parse_tokens("2 0 3 S1 D")
    values = tiles([2, 4, 1, 0])
    x = stream_of(values, [0, 1, 0, 1], 1, Tile(ROWS, 2, bf16))
    got, _, result = folded(x, (D, R), Tile(ROWS, 2, bf16), function=fn.last(), rank=1)
    assert [tile.tobytes() for tile in got.data] == [values[1].tobytes(), values[3].tobytes()]
    assert [tile.shape for tile in got.data] == [(4, 2), (0, 2)] and result.flops == 0
    scanned, _, _ = folded(x, (D, R), Tile(ROWS, 2, bf16), function=fn.last(), kind=ops.scan, rank=1)
    assert scanned == x


def test_costs_and_picture():
    """On-chip, an open state counts as its largest."""
    x = TokenStream.from_nested([[[1, 2, 3], [4, 5, 6]], [[7], [8]]], 2)
    _, p, result = folded(x, (D, 2, R), rank=1, inner=1, hollow=True)
    found = metrics(p).substitute(result.symbols)
    rows = {row.name: row for row in found.rows}
    assert rows["fold"].onchip_bytes == 3 * 4
    assert rows["fold"].flops == result.flops == 8
    assert "accum add rank 1 inner 1 hollow" in render(p)
