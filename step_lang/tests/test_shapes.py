"""Shapes and types that operators give, and what they reject."""

import pytest
import sympy

from step_lang import (
    BadParameter,
    BufferRef,
    Program,
    ShapeMismatch,
    Tile,
    Tuple,
    TypeMismatch,
    UnknownFunction,
    bf16,
    bool_,
    dynamic,
    fn,
    fp32,
    int32,
    ops,
    ragged,
    scalar,
)
from step_lang.dims import Ragged

D, R = dynamic("D"), ragged("R")


@pytest.fixture
def p():
    with Program("p") as program:
        yield program


INT = scalar(int32)


def stream(*shape, type_=INT, name=None):
    number = len(Program.current().operators)
    return ops.input_stream(name or f"in{number}", type_, shape)


def test_flatten(p):
    assert ops.flatten(stream(2, 3, 4), 0, 1).shape == (2, 12)
    assert ops.flatten(stream(2, D, 4), 1, 2).shape == (2 * D, 4)
    merged = ops.flatten(stream(2, R, 4), 0, 1).shape
    assert merged[0] == 2 and isinstance(merged[1], Ragged) and merged[1] != R
    assert ops.flatten(stream(2, R), 0, 1).shape != merged[1:]
    # Streams of one shape that are treated alike still agree.
    x, y = stream(2, R), stream(2, R)
    assert ops.zip(ops.flatten(x, 0, 1), ops.flatten(y, 0, 1)).rank == 0


def test_reshape(p):
    data, flags = ops.reshape(stream(2, 10), 4, pad=0)
    assert data.shape == flags.shape == (2, 3, 4) and flags.type == scalar(bool_)
    assert ops.reshape(stream(2, D), 4, pad=0)[0].shape == (2, sympy.ceiling(D / 4), 4)
    assert isinstance(ops.reshape(stream(2, R), 4, pad=0)[0].shape[1], Ragged)
    assert ops.reshape(stream(6, R), 3, dim=1)[0].shape == (2, 3, R)
    assert ops.reshape(stream(5, 2), 3, dim=1, pad=0)[0].shape == (2, 3, 2)


def test_rank_changes(p):
    assert ops.promote(stream(3, D)).shape == (1, 3, D)
    assert ops.promote(stream(D)).shape == (sympy.Min(1, D), D)
    assert isinstance(ops.promote(stream(R)).shape[0], Ragged)
    assert ops.repeat(stream(3, D), 5).shape == (3, D, 5)
    assert ops.expand(stream(3, 1, 1), stream(3, D, R), rank=2).shape == (3, D, R)
    assert ops.accum(fn.add(), stream(3, D, R), rank=2).shape == (3,)
    assert ops.accum(fn.add(), stream(3, D, R, 2, 4), rank=2, inner=2).shape == (3, 2, 4)
    assert ops.accum(fn.add(), stream(3, D, R, 4), rank=1, inner=2).shape == (3, R, 4)
    assert ops.accum(fn.add(), stream(3, 2, D), rank=1, inner=1, hollow=True).shape == (3, D)
    assert ops.scan(fn.add(), stream(3, D, R), rank=2).shape == (3, D, R)


def test_memory(p):
    t = p.tensor("t", (8, 12), bf16)
    assert ops.linear_offchip_load(t, (4, 4)).shape == (2, 3)
    load = ops.linear_offchip_load(t, (4, 4), ref=stream(D, R), shape=(2, 2), stride=(3, 1))
    assert load.shape == (D, R, 2, 2) and load.type == Tile(4, 4, bf16)
    refs = ops.bufferize(load, rank=2)
    assert refs.shape == (D, R) and refs.type == BufferRef(Tile(4, 4, bf16), (2, 2))
    assert ops.streamify(refs, repeat=3).shape == (D, R, 3, 2, 2)
    assert ops.streamify(refs, stream(D, R, 7, 8)).shape == (D, R, 7, 8, 2, 2)
    assert ops.streamify(refs, repeat=3, shape=(2,), stride=(2,)).shape == (D, R, 3, 2)
    ragged_outermost = ops.bufferize(stream(2, R, 3), rank=2)
    assert ragged_outermost.type.shape == (R, 3)


def test_functions(p):
    a, b = stream(2, D, type_=Tile(4, 8, bf16)), stream(2, D, type_=Tile(8, 2, bf16))
    assert ops.map(fn.matmul(), a, b).type == Tile(4, 2, fp32)
    packed = ops.accum(fn.concat_rows(), a, rank=1)
    assert packed.type == Tile(4 * D, 8, bf16) and packed.shape == (2,)
    assert ops.zip(a, b).type == Tuple((a.type, b.type))


def test_assume(p):
    x = ops.flatten(stream(2, R), 0, 1).assume((6,))
    assert x.shape == (6,) and ops.repeat(x, 2).shape == (6, 2)


def test_streams_are_named(p):
    x = stream(2, 4, name="x")
    first, second = ops.repeat(x, 1), ops.repeat(x, 1)
    assert (first.name, second.name) == ("repeat_0", "repeat_1")
    data, flags = ops.reshape(x, 2, name="cut")
    assert (data.name, flags.name) == ("cut_data", "cut_flags") and data.producer is flags.producer
    assert x.consumers == [first.producer, second.producer, data.producer]
    assert p.operator("cut") is data.producer and p.streams[0] is x


@pytest.mark.parametrize("make, error, words", [
    (lambda p: ops.zip(stream(2, 3), stream(2, 4)), ShapeMismatch, "[2, 3] vs [2, 4]"),
    (lambda p: ops.map(fn.add(), stream(2, D), stream(2, R)), ShapeMismatch, "[2, D] vs [2, R]"),
    (lambda p: ops.map(fn.add(), stream(2), stream(2, type_=scalar(bf16))), TypeMismatch, "int32 vs bf16"),
    (lambda p: ops.map(fn.matmul(), stream(2, type_=Tile(4, 8, bf16)), stream(2, type_=Tile(4, 8, bf16))),
     TypeMismatch, "8 cols of A vs 4 rows of B"),
    (lambda p: ops.map(fn.add(), stream(2)), BadParameter, "2 streams vs 1"),
    (lambda p: ops.map("add", stream(2), stream(2)), UnknownFunction, "'add' vs a function"),
    (lambda p: ops.map(fn.add(), stream(2), stream(2), compute_bw=0), BadParameter, "compute_bw: 0"),
    (lambda p: ops.map(fn.add(), stream(2), 7), TypeMismatch, "7 vs a Stream"),
    (lambda p: ops.repeat(ops.reshape(stream(4), 2), 2), TypeMismatch, "vs a Stream"),
    (lambda p: ops.accum(fn.add(), stream(2, 3), rank=2), BadParameter, "2 + 0 vs the stream's rank 1"),
    (lambda p: ops.accum(fn.add(), stream(2, 3), rank=0), BadParameter, "rank: 0"),
    (lambda p: ops.accum(fn.add(), stream(2, 3, 3, R), rank=1, inner=2), BadParameter,
     "[3, R] vs at most two, the inner one"),
    (lambda p: ops.scan(fn.add(), stream(2, 3, R), rank=1, inner=1), BadParameter, "[R] vs at most two static"),
    (lambda p: ops.accum(fn.add(), stream(2, 3), rank=1, hollow=2), BadParameter, "hollow: 2 vs a bool"),
    (lambda p: ops.accum(fn.silu(), stream(2, 3, type_=scalar(bf16)), rank=1), UnknownFunction, "silu"),
    (lambda p: ops.scan(fn.concat_rows(), stream(2, 3), rank=1), BadParameter, "grows"),
    (lambda p: ops.flatten(stream(2, 3), 1, 1), BadParameter, "1..1 vs 0..1"),
    (lambda p: ops.flatten(stream(2, 3), 0, 2), BadParameter, "0..2 vs 0..1"),
    (lambda p: ops.reshape(stream(2, 3), 2), ShapeMismatch, "3 vs a multiple of chunk 2"),
    (lambda p: ops.reshape(stream(3, R), 2, dim=1, pad=0), ShapeMismatch, "multiple of chunk 2"),
    (lambda p: ops.reshape(stream(R, 2), 2, dim=1), ShapeMismatch, "R vs static"),
    (lambda p: ops.reshape(stream(4), 0), BadParameter, "chunk: 0"),
    (lambda p: ops.repeat(stream(4), 0), BadParameter, "n: 0"),
    (lambda p: ops.expand(stream(2, 3), stream(2, 3), rank=1), ShapeMismatch, "[2, 3] vs [2, 1]"),
    (lambda p: ops.bufferize(stream(2, 3), rank=2), BadParameter, "2 vs the stream's rank 1"),
    (lambda p: ops.bufferize(stream(2, 3, R), rank=2), ShapeMismatch, "[3, R]"),
    (lambda p: ops.streamify(stream(2), repeat=1), TypeMismatch, "vs BufferRef"),
    (lambda p: ops.streamify(ops.bufferize(stream(2, 3), rank=1)), BadParameter, "repeat=None"),
    (lambda p: ops.streamify(ops.bufferize(stream(2, 3), rank=1), stream(3, 4)), ShapeMismatch,
     "[3, 4] vs buffers [2]"),
    (lambda p: ops.streamify(ops.bufferize(stream(2, R), rank=1), repeat=1, shape=(2,)), ShapeMismatch, "[R]"),
    (lambda p: ops.flatten(stream(2, R), 0, 1).assume((2, 3)), ShapeMismatch, "[2, 3] vs"),
    (lambda p: ops.repeat(stream(2), 3).assume((3, 3)), ShapeMismatch, "[3, 3] vs [2, 3]"),
])
def test_rejected(p, make, error, words):
    with pytest.raises(error) as caught:
        make(p)
    message = str(caught.value)
    assert words in message and "test_shapes.py:" in message and "\n" not in message, message
