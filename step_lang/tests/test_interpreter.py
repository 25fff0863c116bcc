"""The interpreter: values of whole programs, dynamic sizes, and what it rejects at run time."""

import time

import numpy as np
import pytest

from examples import matmul, softmax, swiglu
from step_lang import (
    MisalignedStreams,
    Numerics,
    Program,
    ShapeMismatch,
    StepError,
    StreamProtocolError,
    TensorError,
    Tile,
    TokenStream,
    bf16,
    dynamic,
    fn,
    fp32,
    int32,
    interpret,
    metrics,
    ops,
    parse_tokens,
    ragged,
    scalar,
)

D, R = dynamic("D"), ragged("R")


@pytest.mark.parametrize("tile_b, tile_f", [(16, 16), (64, 64), (64, 256)])
def test_swiglu_of_the_papers_size(tile_b, tile_f):
    program = swiglu.build(tile_b=tile_b, tile_f=tile_f)
    tensors = swiglu.inputs(program)
    started = time.perf_counter()
    result = interpret(program, tensors)
    assert time.perf_counter() - started < 10
    error = np.abs(result.tensors["y"].astype(np.float64) - swiglu.reference(tensors)).max()
    assert error < 0.03


def test_tilings_of_swiglu_fold_alike():
    """The fold over K does not depend on how rows and columns are tiled: all outputs are the same bits."""
    outputs = set()
    for tile_b, tile_f in ((4, 16), (8, 32), (16, 16)):
        program = swiglu.build(16, 32, 32, tile_b, tile_f)
        outputs.add(interpret(program, swiglu.inputs(program)).tensors["y"].tobytes())
    assert len(outputs) == 1


@pytest.mark.parametrize("dtype, bound", [("bf16", 1e-4), ("int8", 0)])
def test_matmul(dtype, bound):
    program = matmul.build(16, 32, 24, 8, 8, 12, dtype)
    tensors = matmul.inputs(program, seed=3)
    result = interpret(program, tensors, numerics=Numerics(group=4))
    assert np.abs(result.tensors["c"] - matmul.reference(tensors)).max() <= bound


def test_softmax():
    program = softmax.build(32, 48, 8)
    tensors = softmax.inputs(program)
    y = interpret(program, tensors).tensors["y"].astype(np.float64)
    assert np.abs(y - softmax.reference(tensors)).max() < 0.01 and np.abs(y.sum(axis=1) - 1).max() < 0.02


def test_inputs_are_reproducible():
    program = softmax.build()
    first, again, other = (softmax.inputs(program, seed)["x"].tobytes() for seed in (1, 1, 2))
    assert first == again != other


def packed_rows():
    """Rows packed four to a tile, which a short last tile is padded to."""
    with Program("packed") as p:
        rows = ops.input_stream("rows", Tile(1, 2, bf16), (D,))
        chunks, _ = ops.reshape(rows, 4, pad=0)
        tiles = ops.accum(fn.concat_rows(), chunks, rank=1)
        ops.linear_offchip_store(tiles, p.tensor("y", (8, 2), bf16))
    return p


def test_packing_rows():
    rows = [np.full((1, 2), i + 1).astype(bf16.numpy) for i in range(5)]
    result = interpret(packed_rows(), {}, {"rows": rows})
    assert result.tensors["y"][:, 0].astype(int).tolist() == [1, 2, 3, 4, 5, 0, 0, 0]
    assert result.symbols == {D: 5} and result.stream("accum_0").elements == 2


def test_dynamic_tiles():
    """One tile per group, as many rows as it has."""
    with Program("dynamic_tiles") as p:
        rows = ops.input_stream("rows", Tile(1, 2, bf16), (2, R))
        tiles = ops.accum(fn.concat_rows(), rows, rank=1)
        weights = ops.repeat(ops.linear_offchip_load(p.tensor("w", (2, 2), bf16), (2, 2), shape=(2,), stride=(0,)), 1)
        product = ops.map(fn.matmul(), tiles, ops.flatten(weights, 0, 1))
        largest = ops.map(fn.row_max(), ops.map(fn.cast(dtype="bf16"), product))
        total = ops.accum(fn.add(), ops.repeat(largest, 3), rank=1)
        ops.zip(total, product, name="end")
    p.operator("end").output.optional = True
    ones = np.ones((1, 2), bf16.numpy)
    result = interpret(p, {"w": np.eye(2).astype(bf16.numpy)}, {"rows": [[ones, ones, ones], [ones]]})
    sums, products = result.stream("end").data
    assert [tile.shape for tile in products] == [(3, 2), (1, 2)]
    assert [tile.astype(float).ravel().tolist() for tile in sums] == [[3, 3, 3], [3]]
    assert result.flops == 4 * 8 + 4 * 2 * 2 + 3 * 4


def test_dynamic_tiles_of_one_size():
    """Tiles whose size is a symbol that happens to be the same for all fold like static ones."""
    with Program("regular") as p:
        tiles = ops.accum(fn.concat_rows(), ops.input_stream("rows", Tile(1, 2, bf16), (2, D)), rank=1)
        largest = ops.accum(fn.max(), ops.promote(tiles), rank=1, name="largest")
        ops.scan(fn.add(), tiles.producer.program.operator("promote_0").output, rank=1, name="sums")
    for name in ("largest", "sums"):
        p.operator(name).output.optional = True
    assert str(largest.type) == "Tile(D, 2, bf16)"
    rows = [[np.array([[i, j]]).astype(bf16.numpy) for i in range(3)] for j in range(2)]
    result = interpret(p, {}, {"rows": rows})
    assert result.stream("largest").data.astype(int).tolist() == [[[0, 1], [1, 1], [2, 1]]]
    assert result.stream("sums").data[1].astype(int).tolist() == [[0, 1], [2, 1], [4, 1]]


def test_stores():
    with Program("p") as p:
        t = p.tensor("t", (4, 4), int32)
        ops.linear_offchip_store(ops.linear_offchip_load(t, (2, 2)), p.tensor("same", (4, 4), int32))
        ops.linear_offchip_store(ops.linear_offchip_load(t, (2, 2)), p.tensor("turned", (4, 4), int32),
                                 shape=(2, 2), stride=(1, 2))
        ops.linear_offchip_store(ops.linear_offchip_load(t, (2, 2), shape=(1,), stride=(1,)),
                                 p.tensor("partly", (4, 4), int32))
    given = {"t": np.arange(16, dtype=np.int32).reshape(4, 4), "partly": np.ones((4, 4), np.int32)}
    result = interpret(p, given)
    assert np.array_equal(result.tensors["same"], given["t"])
    assert np.array_equal(result.tensors["turned"], np.block([[given["t"][:2, :2], given["t"][2:, :2]],
                                                              [given["t"][:2, 2:], given["t"][2:, 2:]]]))
    assert result.tensors["partly"].tolist() == [[0, 1, 0, 0], [4, 5, 0, 0], [0] * 4, [0] * 4]
    assert (given["partly"] == 1).all()


def test_streams_kept_or_not():
    program = softmax.build(4, 4, 2)
    result = interpret(program, softmax.inputs(program))
    assert set(result.streams) == {stream.name for stream in program.streams}
    assert result.stream(program.streams[0]) == result.stream("load_x")
    assert interpret(program, softmax.inputs(program), keep_streams=False).streams == {}


def test_lowered_size():
    """2,048 products of 16 x 16 tiles, the lowered form's load, within its time."""
    rng = np.random.default_rng(0)
    with Program("tiles") as p:
        a = ops.linear_offchip_load(p.tensor("a", (256, 256), bf16), (16, 16), shape=(8, 16, 16), stride=(0, 1, 16))
        b = ops.linear_offchip_load(p.tensor("b", (256, 256), bf16), (16, 16), shape=(8, 16), stride=(16, 1))
        b = ops.streamify(ops.bufferize(ops.repeat(b, 1), rank=1), repeat=16)
        c = ops.accum(fn.matmul(), a, ops.flatten(b, 0, 1), rank=1, inner=1, name="product")
        ops.linear_offchip_store(c, p.tensor("c", (256, 128), fp32))
    tensors = {name: rng.standard_normal((256, 256)).astype(bf16.numpy) for name in "ab"}
    started = time.perf_counter()
    result = interpret(p, tensors)
    assert time.perf_counter() - started < 20
    assert result.stream("product").elements == 128 and result.flops == 2048 * 2 * 16**3


# Mistakes at run time


def run_error(error, program, tensors=None, inputs=None):
    with pytest.raises(error) as caught:
        interpret(program, tensors or {}, inputs or {})
    text = str(caught.value)
    assert "test_interpreter.py:" in text and "\n" not in text
    return text


def copy_program():
    with Program("copy") as p:
        tiles = ops.linear_offchip_load(p.tensor("x", (4, 2), bf16), (2, 2))
        ops.linear_offchip_store(tiles, p.tensor("y", (4, 2), bf16))
    return p


@pytest.mark.parametrize("tensors, words", [
    ({}, "tensor 'x'"), ({"x": np.zeros((2, 4), bf16.numpy)}, "[2, 4] vs [4, 2]"),
    ({"x": np.zeros((4, 2), np.float32)}, "float32 vs bfloat16"),
    ({"x": np.zeros((4, 2), bf16.numpy), "z": np.zeros((4, 2))}, "'z'"),
])
def test_tensors(tensors, words):
    assert words in run_error(TensorError, copy_program(), tensors)


def with_input(shape, use, second=None):
    with Program("p") as p:
        streams = [ops.input_stream("x", scalar(int32), shape)]
        if second is not None:
            streams.append(ops.input_stream("y", scalar(int32), second))
        out = use(*streams)
        (out if isinstance(out, tuple) else (out,))[0].optional = True
    return p


@pytest.mark.parametrize("values, words", [
    (None, "missing"), ([[1, 2], 3], "vs"), ([[1.5]], "value 1.5 vs integers -2147483648..2147483647"),
    ([[np.zeros((2, 2), np.int32)]], "[2, 2]"),
])
def test_input_values(values, words):
    program = with_input((D, R), lambda x: ops.repeat(x, 2))
    assert words in run_error(TensorError, program, inputs={} if values is None else {"x": values})


def test_input_of_wrong_rank_or_dtype():
    program = with_input((D, R), lambda x: ops.repeat(x, 2))
    assert "rank 0 vs 1" in run_error(StreamProtocolError, program, inputs={"x": parse_tokens("1 2 D")})
    wrong = parse_tokens("1 2 S1 D", type_=scalar(fp32))
    assert "float32 vs int32" in run_error(StepError, program, inputs={"x": wrong})
    broken = TokenStream(1, [0], [False], np.zeros((1, 1, 1), np.int32))
    assert "last beat" in run_error(StreamProtocolError, program, inputs={"x": broken})


@pytest.mark.parametrize("shape, nested, words", [
    ((2, R), [[1], [2], [3]], "D_1 is 3 at run time vs 2"),
    ((D, 2), [[1, 2], [3]], "D_0 is 1 at run time vs 2"),
    ((2, D), [[1, 2], [3]], "D_0 is 1 at run time vs D = 2"),
    ((2, D), [[1, 2], []], "D_0 is 0 at run time vs D = 2"),
    ((D, D), [[1, 2, 3], [4, 5, 6]], "vs D = 3"),
    ((1, 2, 2), [[[], [1, 2]]], "D_0 is 0 at run time vs 2"),
])
def test_shapes_that_do_not_hold(shape, nested, words):
    program = with_input(shape, lambda x: ops.repeat(x, 2))
    assert words in run_error(ShapeMismatch, program, inputs={"x": nested})


def test_claims_are_checked():
    program = with_input((2, R), lambda x: ops.repeat(ops.flatten(x, 0, 1).assume((4,)), 2))
    assert interpret(program, {}, {"x": [[1], [2, 3, 4]]}).stream("repeat_0").elements == 8
    text = run_error(ShapeMismatch, program, inputs={"x": [[1], [2, 3]]})
    assert "(assumed): D_0 is 3 at run time vs 4" in text and "flatten 'flatten_0'" in text
    dynamic_program = with_input((D, R), lambda x: ops.repeat(x, 2))
    with pytest.raises(ShapeMismatch, match="2 at run time vs D = 3"):
        interpret(dynamic_program, {}, {"x": [[1], [2]]}, symbols={"D": 3})


def test_empty_vectors_hold_only_where_a_dimension_can_be_zero():
    program = with_input((D, R, 2), lambda x: ops.accum(fn.add(), x, rank=1).assume((D, ragged("folds"))))
    tokens = parse_tokens("1 2 S2 S2 3 4 S2 D")
    assert interpret(program, {}, {"x": tokens}).stream("accum_0") == parse_tokens("3 S1 0 S1 7 S1 D")
    regular = with_input((D, 1, 2), lambda x: ops.accum(fn.add(), x, rank=1))
    assert "empty vector at run time vs dimensions [1, 2]" in run_error(ShapeMismatch, regular, inputs={"x": tokens})


@pytest.mark.parametrize("x, y", [("1 2 S1 3 S1 D", "1 S1 2 3 S1 D"), ("1 2 S1 D", "1 2 S1 S1 D"),
                                  ("1 2 S1 S1 D", "1 2 S1 3 S1 D")])
@pytest.mark.parametrize("use", [ops.zip, lambda x, y: ops.map(fn.add(), x, y)])
def test_stops_that_part(x, y, use):
    program = with_input((D, R), use, second=(D, R))
    text = run_error(MisalignedStreams, program, inputs={"x": parse_tokens(x), "y": parse_tokens(y)})
    assert "on 'x' vs" in text and "on 'y'" in text


@pytest.mark.parametrize("values, ref", [("1 S1 2 S1 D", "1 2 S1 D"), ("1 S1 D", "1 2 S1 3 S1 D"), ("D", "1 S1 D"),
                                         ("S1 D", "1 S1 D"), ("1 S1 D", "D")])
def test_expand_that_parts(values, ref):
    program = with_input((R, 1), lambda x, y: ops.expand(x, y, rank=1), second=(R, ragged("Q")))
    inputs = {"x": parse_tokens(values, 1), "y": parse_tokens(ref, 1)}
    assert "expand 'expand_0'" in run_error(MisalignedStreams, program, inputs=inputs)


def test_expand_of_rank_0_drops_no_value():
    """An element of the value stream must not face a reference vector without elements."""
    program = with_input((D, R), lambda x, y: ops.expand(x, y, rank=0), second=(D, R))
    inputs = {"x": parse_tokens("1 S1 2 S1 D"), "y": parse_tokens("1 S1 S1 D")}
    assert "expand 'expand_0'" in run_error(MisalignedStreams, program, inputs=inputs)


@pytest.mark.parametrize("ref", ["1 S1 2 S1 3 S1 D", "1 S1 D", "D", "1 2 S1 S1 S1 D"])
def test_streamify_that_parts(ref):
    program = with_input((R, ragged("Q")), lambda x, y: ops.streamify(ops.bufferize(x, rank=1), y),
                         second=(R, ragged("P")))
    inputs = {"x": parse_tokens("1 2 S1 3 S1 D"), "y": parse_tokens(ref, 1)}
    assert "streamify 'streamify_0'" in run_error(MisalignedStreams, program, inputs=inputs)


def test_stream_that_ends_inside_a_chunk():
    program = with_input((D,), lambda x: ops.reshape(x, 2)[0])
    assert interpret(program, {}, {"x": [1, 2, 3, 4]}).stream("reshape_0_data") == parse_tokens("1 2 S1 3 4 S1 D")
    text = run_error(StreamProtocolError, program, inputs={"x": [1, 2, 3]})
    assert "ends after 1 of a chunk vs chunk 2" in text and "give pad" in text


def test_inner_stops_out_of_place():
    program = with_input((D, R, 2), lambda x: ops.accum(fn.add(), x, rank=1, inner=1))
    text = run_error(StreamProtocolError, program, inputs={"x": [[[1, 2, 3], [4]]]})
    assert "element 1: stop 0 vs 1" in text


def test_irregular_buffer():
    program = with_input((1, 2, D), lambda x: ops.bufferize(x, rank=2))
    assert "empty inner vector" in run_error(StreamProtocolError, program, inputs={"x": [[[1, 2], []]]})
    assert "D_0 is 1" in run_error(ShapeMismatch, program, inputs={"x": [[[1, 2], [3]]]})


def test_one_tile_too_many():
    with Program("p") as p:
        ops.linear_offchip_store(ops.input_stream("x", scalar(int32), (D,)), p.tensor("y", (2, 1), int32))
    assert "3 vs 2 positions" in run_error(ShapeMismatch, p, inputs={"x": [1, 2, 3]})
    assert interpret(p, {}, {"x": [7]}).tensors["y"].tolist() == [[7], [0]]
    assert interpret(p, {}, {"x": []}).tensors["y"].tolist() == [[0], [0]]


def test_expand_whose_groups_end_at_other_levels():
    program = with_input((R, ragged("Q"), 1), lambda x, y: ops.expand(x, y, rank=1),
                         second=(R, ragged("Q"), ragged("P")))
    inputs = {"x": parse_tokens("1 S1 2 S2 D"), "y": parse_tokens("1 S2 2 S2 D")}
    assert "stop 1 on 'x' vs beat 0: element with stop 2 on 'y'" in run_error(MisalignedStreams, program, inputs=inputs)


def folded_views(own: bool):
    """Views of 2 tiles for each reference, each view folded: an empty vector of references becomes an element."""
    with Program("views") as p:
        ref = ops.input_stream("ref", scalar(int32), (3, ragged("r")))
        x = ops.linear_offchip_load(p.tensor("x", (2, 1), int32), (1, 1), ref=ref, shape=(2,), stride=(1,))
        folded = ops.accum(fn.add(), x, rank=1, name="fold")
        folded = folded.assume((3, ragged("q"))) if own else folded
        ops.linear_offchip_store(folded, p.tensor("y", (4, 1), int32))
    return p


def test_ragged_counts_that_disagree():
    """They overwrote one another, and traffic was not that of the symbolic expression."""
    x, refs = np.array([[3], [4]], np.int32), {"ref": [[], [1, 2], [3]]}
    with pytest.raises(ShapeMismatch, match=r"accum 'fold' .*: 4 of r at run time vs 3 in stream 'ref'; fix: .*assume"):
        interpret(folded_views(False), {"x": x}, refs)
    p = folded_views(True)
    result = interpret(p, {"x": x}, refs)
    assert result.tensors["y"].ravel().tolist() == [0, 7, 7, 7]
    assert int(metrics(p).substitute(result.symbols).offchip_bytes) == result.offchip_bytes == 4 * (3 + 6 + 4)
    assert interpret(folded_views(False), {"x": x}, {"ref": [[5], [1, 2], [3]]}).tensors["y"].tolist() == [[7]] * 4


def test_elements_are_those_of_the_shape():
    """What follows the fold has the dimension too, and was stored with other bytes than the expression says."""
    with Program("p") as p:
        x = ops.repeat(ops.input_stream("x", scalar(int32), (2, ragged("r"))), 3)
        x = ops.promote(x)
        once = ops.repeat(ops.accum(fn.max(), x, rank=1), 1)
        ops.linear_offchip_store(ops.expand(once, x, rank=1), p.tensor("y", (6, 1), int32))
    with pytest.raises(ShapeMismatch, match=r"0 elements at run time vs 6; fix: .* assume"):
        interpret(p, {}, {"x": [[], []]})
    assert interpret(p, {}, {"x": [[1], [2]]}).offchip_bytes == 4 * (2 + 6)
