"""Views of a buffer with an open dimension, which goes on while it is inside: against numpy, logical and lowered."""

import numpy as np
import pytest

from step_lang import (
    BadParameter,
    Program,
    ShapeMismatch,
    Tile,
    TokenStream,
    ViewOutOfRange,
    bf16,
    dynamic,
    int32,
    interpret,
    ops,
    ragged,
    scalar,
)
from step_lang.dims import Ragged
from step_lang.tests.lowered import assert_lowered_equals

R, N = ragged("R"), dynamic("N")
INT = scalar(int32)


def view(shape, stride, inner=(3,), outer=R, type_=INT, **passes):
    """Buffers ``[outer, *inner]`` of a stream ``[4, outer, *inner]``, read by the view."""
    x = ops.input_stream("x", type_, (4, outer, *inner))
    return ops.streamify(ops.bufferize(x, rank=1 + len(inner)), shape=shape, stride=stride, **(passes or {"repeat": 1}))


def test_shapes():
    with Program("p"):
        columns = view((3, None), (1, 3))
        assert columns.shape == (4, 1, 3, R)   # every row is visited once
        refs = columns.producer.inputs[0]
        assert ops.streamify(refs, repeat=2, shape=(None, 3), stride=(3, 1)).shape == (4, 2, R, 3)
        other = ops.streamify(refs, repeat=1, shape=(2, None), stride=(1, 2)).shape
        assert other[:3] == (4, 1, 2) and isinstance(other[3], Ragged) and other[3] != R
        assert ops.streamify(refs, repeat=1, shape=(2, None), stride=(1, 2)).shape == other
        ref = ops.input_stream("ref", scalar(int32), (4, 7))
        assert ops.streamify(refs, ref, shape=[3, None], stride=[1, 3]).shape == (4, 7, 3, R)
    with Program("p"):
        assert view((3, None), (1, 3), outer=N).shape[-1] == N
    with Program("p"):
        assert view((3, None), (1, 3), outer=5).shape[-1] == 5


@pytest.mark.parametrize("shape, stride, error, words", [
    ((None, None), (3, 1), BadParameter, "2 open dimensions vs at most one"),
    ((3, None), None, BadParameter, "no stride"),
    ((3, None), (1,), BadParameter, "2 sizes vs 1 strides"),
    ((3, None), (1, 0), BadParameter, "stride of the open dimension 1: 0 vs at least 1"),
    ((3, None), (1, -3), BadParameter, "-3 vs at least 1"),
    ((0, None), (1, 3), BadParameter, "view shape: 0 vs"),
    ((3, None), (-1, 3), ViewOutOfRange, "index -2 vs at least 0"),
])
def test_refused(shape, stride, error, words):
    with Program("p"), pytest.raises(error, match="streamify 'streamify_0' .*" + words):
        view(shape, stride)


def test_only_the_outermost_may_vary():
    with Program("p"), pytest.raises(ShapeMismatch, match=r"\[R, N\] vs static dimensions below the outermost"):
        view((3, None), (1, 3), inner=(N,))


def test_columns_of_rows():
    """Buffers of several heights, one of them empty, by columns, twice."""
    heights = [2, 0, 1, 4]
    values = iter(range(100))
    nested = [[[next(values) for _ in range(3)] for _ in range(height)] for height in heights]
    with Program("p") as p:
        x = ops.input_stream("x", scalar(int32), (4, R, 3))
        read = ops.streamify(ops.bufferize(x, rank=2), repeat=2, shape=(3, None), stride=(1, 3), name="read")
        ops.linear_offchip_store(read, p.tensor("y", (42, 1), int32))
    assert_lowered_equals(p, 2, inputs={"x": nested})
    expected = [np.array(rows).T for rows in nested for _ in range(2) if rows]
    result = interpret(p, {}, inputs={"x": nested})
    assert result.tensors["y"].reshape(-1).tolist() == np.concatenate([e.reshape(-1) for e in expected]).tolist()
    stops = result.streams["read"].stop.tolist()
    assert stops == [
        0, 1, 0, 1, 0, 2, 0, 1, 0, 1, 0, 3, 2, 3, 1, 1, 2, 1, 1, 3,
        0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 3]


@pytest.mark.parametrize("rows, cols", [(4, 2), (2, 2), (1, 4)])
def test_lowered_tiles(rows, cols):
    """Over tiles, the view's open dimension has those of a tile inside it."""
    rng = np.random.default_rng(3)
    nested = [[[rng.integers(-9, 9, (rows, cols)).astype(bf16.numpy) for _ in range(2)] for _ in range(height)]
              for height in (3, 1, 0, 2)]
    with Program("p") as p:
        x = ops.input_stream("x", Tile(rows, cols, bf16), (4, R, 2))
        read = ops.streamify(ops.bufferize(x, rank=2), repeat=2, shape=(2, None), stride=(1, 2))
        ops.linear_offchip_store(read, p.tensor("y", (24 * rows, cols), bf16))
    assert_lowered_equals(p, 2, inputs={"x": nested})


def test_tiles_of_several_heights():
    """Elements need not have the same rows."""
    rho = ragged("rho")
    tiles = [[[np.full((1 + (i + k) % 2, 2), 3 * i + k, dtype=np.int32) for k in range(2)] for i in range(height)]
             for height in (3, 0, 1, 2)]
    with Program("p"):
        read = view((2, None), (1, 2), inner=(2,), type_=Tile(rho, 2, int32))
    stored = TokenStream.from_nested(tiles, 2, Tile(rho, 2, int32))
    buffers = read.producer.inputs[0].producer.interpret(None, [stored])
    tokens = read.producer.interpret(None, buffers)[0]
    expected = [row[k] for rows in tiles if rows for k in range(2) for row in rows]
    assert [tile.tolist() for tile in tokens.data] == [tile.tolist() for tile in expected]


def test_a_view_that_begins_beyond_the_buffer():
    with Program("p") as p:
        read = view((4, None), (1, 4), inner=())
        ops.linear_offchip_store(read, p.tensor("y", (99, 1), int32))
    with pytest.raises(ViewOutOfRange, match=r"streamify 'streamify_0' .*index 3 vs a buffer of 3 elements"):
        interpret(p, {}, inputs={"x": [[1, 2, 3, 4], [1, 2, 3], [], [6, 7, 8, 9]]})
