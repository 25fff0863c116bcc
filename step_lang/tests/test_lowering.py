"""Lowering, operator by operator and on the examples: the lowered program is the same program."""

from __future__ import annotations

import numpy as np
import pytest

from examples import matmul, softmax, swiglu
from step_lang import Program, Selector, Tile, bf16, fn, fp32, int8, int32, interpret, ops, ragged, scalar, u32
from step_lang.errors import (
    BadParameter,
    ShapeMismatch,
    TileDoesNotDivide,
    TypeMismatch,
    UnknownFunction,
    ViewOutOfRange,
)
from step_lang.lowering import lower
from step_lang.tests.lowered import assert_lowered_equals


def values(shape, dtype=bf16, seed=0):
    """Random contents."""
    generator = np.random.default_rng(seed)
    if dtype.is_float:
        return generator.standard_normal(shape).astype(dtype.numpy)
    return generator.integers(0, 7, shape).astype(dtype.numpy)


def tiles(nested, rows, cols, dtype=bf16, seed=0):
    """``nested``, each leaf replaced by a random tile."""
    generator = np.random.default_rng(seed)

    def fill(node):
        if isinstance(node, list):
            return [fill(child) for child in node]
        return generator.standard_normal((rows, cols)).astype(dtype.numpy)

    return fill(nested)


def unused(*streams):
    """Streams that a test program leaves unused on purpose."""
    for stream in streams:
        stream.optional = True


EMPTIES = [[[0, 0], [], [0]], [[], [0]], [[0]]]
"""Shape [3, ragged, ragged] with empty vectors."""


def ragged_input(rows, cols, dtype=bf16, name="x"):
    return ops.input_stream(name, Tile(rows, cols, dtype), (3, ragged("m"), ragged("n")))


# Examples


@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize("sizes", [dict(tile_b=4, tile_f=8), dict(tile_b=8, tile_f=4), dict(tile_b=4, tile_f=4),
                                   dict(tile_b=8, tile_f=16)])
def test_swiglu(tile, sizes):
    program = swiglu.build(8, 16, 16, **sizes)
    assert_lowered_equals(program, tile, swiglu.inputs(program))


def test_swiglu_buffers_x_once_for_gate_and_up():
    program = swiglu.build(8, 16, 16, 4, 8)
    kinds = [op.kind for op in lower(program, 4).program.operators]
    assert kinds.count("bufferize") == 2    # x, and the product's columns
    assert kinds.count("streamify") == 2


def test_swiglu_of_the_paper():
    program = swiglu.build(64, 256, 512, 64, 64)
    assert_lowered_equals(program, 16, swiglu.inputs(program))


@pytest.mark.parametrize("dtype", ["bf16", "int8"])
@pytest.mark.parametrize("sizes", [(4, 4, 4), (8, 4, 8), (4, 8, 4), (8, 8, 16)])
def test_matmul(dtype, sizes):
    program = matmul.build(8, 8, 16, *sizes, dtype=dtype)
    assert_lowered_equals(program, 4, matmul.inputs(program))


@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize("rows, cols, tile_rows", [(8, 16, 4), (8, 4, 8), (4, 8, 4)])
def test_softmax(tile, rows, cols, tile_rows):
    program = softmax.build(rows, cols, tile_rows)
    assert_lowered_equals(program, tile, softmax.inputs(program))


def test_softmax_holds_tiles_where_a_fork_and_a_join_would_wait_for_each_other():
    lowered = lower(softmax.build(8, 16, 4), 2)
    held = [op for op in lowered.program.operators if op.name.endswith("_held")]
    assert [op.inputs[0].producer.inputs[0].name for op in held] == ["load_x", "exp"]


# Loads and stores


@pytest.mark.parametrize("shape, stride", [
    (None, None),                   # whole grid in order
    ((3, 2), (1, 3)),               # transposed
    ((2, 2, 3), (0, 3, 1)),         # twice
    ((6,), (1,)),                   # rows of the grid one after the other: the dimension is split
    ((2, 6), (0, 1)),
    ((2,), (4,)),                   # a diagonal
    ((1, 3), (5, 1)),
])
def test_load_views(shape, stride):
    with Program("p") as p:
        x, y = p.tensor("x", (8, 12), bf16), p.tensor("y", (48, 4), bf16)
        stream = ops.linear_offchip_load(x, (4, 4), shape=shape, stride=stride)
        ops.linear_offchip_store(stream, y)
    assert_lowered_equals(p, 2, {"x": values((8, 12))})


def test_load_view_that_is_not_affine_over_rows_and_columns():
    with Program("p") as p:
        x, y = p.tensor("x", (8, 12), bf16), p.tensor("y", (20, 4), bf16)
        ops.linear_offchip_store(ops.linear_offchip_load(x, (4, 4), shape=(5,), stride=(1,)), y)
    with pytest.raises(ViewOutOfRange, match=r"shape \[5\].*2 x 3 tiles; fix"):
        lower(p, 2)


@pytest.mark.parametrize("rows, cols", [(1, 4), (4, 1), (1, 1), (4, 4)])
def test_load_with_reference(rows, cols):
    with Program("p") as p:
        x, y = p.tensor("x", (4, 4), bf16), p.tensor("y", (64, 4), bf16)
        ref = ops.input_stream("ref", Tile(rows, cols, bf16), (2, 3))
        if (rows, cols) == (1, 1):
            ref = ops.map(fn.scale(2.0), ref)
        ops.linear_offchip_store(ops.linear_offchip_load(x, (2, 4), ref), y)
    assert_lowered_equals(p, 2, {"x": values((4, 4))}, {"ref": tiles([[0] * 3] * 2, rows, cols)})


def test_load_with_reference_that_has_empty_vectors():
    with Program("p") as p:
        x, y = p.tensor("x", (4, 4), bf16), p.tensor("y", (64, 4), bf16)
        ref = ops.input_stream("ref", scalar(u32), (3, ragged("m"), ragged("n")))
        ops.linear_offchip_store(ops.linear_offchip_load(x, (2, 4), ref), y)
    assert_lowered_equals(p, 2, {"x": values((4, 4))}, {"ref": EMPTIES})


def test_store_to_a_view():
    with Program("p") as p:
        x, y = p.tensor("x", (4, 8), bf16), p.tensor("y", (8, 4), bf16)
        ops.linear_offchip_store(ops.linear_offchip_load(x, (2, 4)), y, shape=(2, 2), stride=(1, 2))
    assert_lowered_equals(p, 2, {"x": values((4, 8))})


# Functions in map


@pytest.mark.parametrize("function", [fn.silu(), fn.exp(), fn.scale(1.5), fn.cast("fp32"), fn.cast("int8")])
@pytest.mark.parametrize("rows, cols", [(4, 8), (1, 4), (8, 1), (1, 1)])
def test_map_of_one(function, rows, cols):
    with Program("p"):
        x = ragged_input(rows, cols)
        unused(ops.map(function, x))
    assert_lowered_equals(x.program, 4, inputs={"x": tiles(EMPTIES, rows, cols)})


@pytest.mark.parametrize("a, b", [((4, 8), (4, 8)), ((4, 8), (4, 1)), ((4, 8), (1, 8)), ((4, 8), (1, 1)),
                                  ((1, 8), (4, 1)),
                                  ((1, 1), (1, 4)), ((1, 1), (1, 1)), ((4, 1), (4, 1)), ((1, 1), (4, 4))])
@pytest.mark.parametrize("function", [fn.add(), fn.sub(), fn.mul(), fn.max()])
def test_map_of_two_broadcasts(function, a, b):
    with Program("p"):
        x, y = ragged_input(*a, name="x"), ragged_input(*b, name="y")
        unused(ops.map(function, x, y))
    assert_lowered_equals(x.program, 2, inputs={"x": tiles(EMPTIES, *a), "y": tiles(EMPTIES, *b, seed=1)})


@pytest.mark.parametrize("m, k, n", [(4, 8, 2), (2, 2, 2), (1, 4, 6), (4, 4, 1), (1, 8, 1), (4, 1, 4), (1, 1, 4),
                                     (2, 1, 1),
                                     (1, 1, 1)])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("dtype", [bf16, int8])
def test_map_matmul(m, k, n, transpose, dtype):
    b_shape = (n, k) if transpose else (k, n)
    with Program("p"):
        a = ops.input_stream("a", Tile(m, k, dtype), (2, 3))
        b = ops.input_stream("b", Tile(*b_shape, dtype), (2, 3))
        unused(ops.map(fn.matmul(transpose_b=transpose), a, b))
    grid = [[0] * 3] * 2
    assert_lowered_equals(a.program, 2, inputs={"a": tiles(grid, m, k, dtype), "b": tiles(grid, *b_shape, dtype, 1)})


def test_map_matmul_of_a_stream_with_itself():
    with Program("p") as p:
        x = ops.linear_offchip_load(p.tensor("x", (8, 8), bf16), (4, 8))
        unused(ops.map(fn.matmul(transpose_b=True), x, x, name="gram"))
    lowered = assert_lowered_equals(p, 2, {"x": values((8, 8))})
    assert any(op.name.endswith("_held") for op in lowered.program.operators)


@pytest.mark.parametrize("function", [fn.row_sum(), fn.row_max()])
@pytest.mark.parametrize("rows, cols", [(4, 8), (1, 4), (4, 1), (1, 1)])
def test_map_rows(function, rows, cols):
    with Program("p"):
        x = ops.input_stream("x", Tile(rows, cols, bf16), (2, 3))
        unused(ops.map(function, x))
    assert_lowered_equals(x.program, 2, inputs={"x": tiles([[0] * 3] * 2, rows, cols)})


@pytest.mark.parametrize("function", [fn.matmul(transpose_b=True), fn.row_max(), fn.row_sum()])
@pytest.mark.parametrize("rows, cols", [(4, 4), (1, 4), (2, 4)])
def test_a_fold_over_a_grid_passes_bare_stops(function, rows, cols):
    """An empty vector of elements stays one: no state stands for elements that there are not."""
    with Program("p"):
        x = ragged_input(rows, cols)
        unused(ops.map(function, *([x] * function.arity), name="fold"))
    assert_lowered_equals(x.program, 2, inputs={"x": tiles(EMPTIES, rows, cols)})


# Folds


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("function, init", [(fn.add(), None), (fn.max(), None), (fn.mul(), None), (fn.add(), 1.5)])
@pytest.mark.parametrize("rows, cols", [(4, 2), (1, 4), (1, 1)])
def test_accum_elementwise(rank, function, init, rows, cols):
    with Program("p"):
        x = ragged_input(rows, cols)
        unused(ops.accum(function, x, rank=rank, init=init))
    assert_lowered_equals(x.program, 2, inputs={"x": tiles(EMPTIES, rows, cols)})


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("m, k, n", [(4, 2, 6), (1, 4, 4), (4, 4, 1), (1, 2, 1), (2, 1, 2)])
@pytest.mark.parametrize("transpose", [False, True])
def test_accum_matmul(rank, m, k, n, transpose):
    b_shape = (n, k) if transpose else (k, n)
    with Program("p"):
        a, b = ragged_input(m, k, name="a"), ragged_input(*b_shape, name="b")
        unused(ops.accum(fn.matmul(transpose_b=transpose), a, b, rank=rank, init=0.5))
    assert_lowered_equals(a.program, 2, inputs={"a": tiles(EMPTIES, m, k), "b": tiles(EMPTIES, *b_shape, seed=1)})


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("function", [fn.row_sum(), fn.row_max()])
@pytest.mark.parametrize("rows, cols", [(4, 8), (1, 4), (4, 1), (1, 1)])
def test_accum_rows(rank, function, rows, cols):
    with Program("p"):
        x = ragged_input(rows, cols)
        unused(ops.accum(function, x, rank=rank))
    assert_lowered_equals(x.program, 2, inputs={"x": tiles(EMPTIES, rows, cols)})


@pytest.mark.parametrize("function", [fn.add(), fn.matmul(), fn.row_sum(), fn.row_max(), fn.last(),
                                      fn.concat_rows(), fn.concat_cols()])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_accum_that_leaves_out_empty_groups(function, size):
    """Lowering forgot ``hollow``: the states of groups without elements were stored."""
    with Program("p") as p:
        x = ragged_input(size, size)
        state = ops.accum(function, *[ops.repeat(x, 2)] * (2 if function.name == "matmul" else 1), rank=1, hollow=True)
        unused(state)
    if function.name == "concat_rows" and size == 1:
        with pytest.raises(BadParameter, match="hollow: True vs False where rows are packed; fix: "):
            lower(p, 2)
    else:
        assert_lowered_equals(p, 2, inputs={"x": tiles(EMPTIES, size, size)})


@pytest.mark.parametrize("function", [fn.concat_rows(), fn.concat_cols()])
@pytest.mark.parametrize("rows, cols", [(4, 2), (1, 4), (4, 1)])
def test_joined_tiles_of_a_static_number_within_a_dimension_that_may_be_empty(function, rows, cols):
    """The interpreter made a tile of one element's size, lowering a bare stop: now the first is of the size its type
    says, and the second is refused."""
    with Program("p") as p:
        x = ops.input_stream("x", Tile(rows, cols, bf16), (3, ragged("m")))
        joined = ops.accum(function, ops.repeat(x, 2), rank=1, init=3, name="joined")
        unused(joined.assume((3, ragged("joined"))))
    found = interpret(p, {}, {"x": [[], [np.ones((rows, cols), bf16.numpy)], []]}, keep_streams=True)
    data = found.stream(joined).data
    assert {array.shape for array in data} == {(joined.type.rows, joined.type.cols)}
    assert [float(array.astype(np.float32).mean()) for array in data] == [3, 1, 3]
    with pytest.raises(ShapeMismatch, match=r"one may be 0, vs groups that have elements; fix: "):
        lower(p, 2)


def test_buffers_that_leave_out_empty_vectors():
    with Program("p") as p:
        x = ragged_input(4, 2)
        kept = ops.bufferize(ops.repeat(x, 2), rank=1, hollow=True)
        unused(ops.streamify(kept, repeat=2))
    assert_lowered_equals(p, 2, inputs={"x": tiles(EMPTIES, 4, 2)})


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("function", [fn.concat_rows(), fn.concat_cols()])
@pytest.mark.parametrize("rows, cols", [(4, 2), (1, 4), (4, 1), (1, 1)])
def test_accum_concat(rank, function, rows, cols):
    with Program("p"):
        x = ops.input_stream("x", Tile(rows, cols, bf16), (3, 2, 4))
        unused(ops.accum(function, x, rank=rank))
    assert_lowered_equals(x.program, 2, inputs={"x": tiles([[[0] * 4] * 2] * 3, rows, cols)})


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("function", [fn.add(), fn.max()])
@pytest.mark.parametrize("rows, cols", [(4, 2), (1, 4), (1, 1)])
def test_scan(rank, function, rows, cols):
    with Program("p"):
        x = ragged_input(rows, cols)
        unused(ops.scan(function, x, rank=rank))
    assert_lowered_equals(x.program, 2, inputs={"x": tiles(EMPTIES, rows, cols)})


def test_scan_of_matmul_has_no_rule():
    with Program("p"):
        x = ragged_input(2, 2)
        unused(ops.scan(fn.row_sum(), x, rank=1, name="running"))
    with pytest.raises(UnknownFunction, match=r"scan 'running'.*'row_sum'.*fix"):
        lower(x.program, 2)


# Shape operators


SHAPES = {
    "flatten 0 1": lambda x: ops.flatten(x, 0, 1),
    "flatten 0 2": lambda x: ops.flatten(x, 0, 2),
    "flatten 1 2": lambda x: ops.flatten(x, 1, 2),
    "promote": lambda x: ops.promote(x),
    "repeat": lambda x: ops.repeat(x, 3),
    "zip": lambda x: ops.zip(x, ops.map(fn.scale(2.0), x)),
    "bufferize 1": lambda x: ops.streamify(ops.bufferize(x, 1), repeat=2),
    "reshape": lambda x: ops.reshape(ops.flatten(x, 0, 2), 2, pad=0.5)[0],
    "reshape inner": lambda x: ops.reshape(x, 2, pad=0.5)[0],
    "repeat, flatten": lambda x: ops.flatten(ops.repeat(x, 2), 0, 1),
    "streamify by reference": lambda x: ops.streamify(ops.bufferize(x, 1), ref=ops.input_stream(
        "ref", scalar(u32), (3, ragged("m")))),
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("rows, cols", [(4, 2), (2, 2), (1, 4), (1, 1)])
def test_shape_operators(name, rows, cols):
    inputs = {"x": tiles(EMPTIES, rows, cols)}
    with Program("p") as p:
        x = ragged_input(rows, cols)
        unused(SHAPES[name](x))
    if "reference" in name:
        inputs["ref"] = [[0, 0, 0], [0, 0], [0]]
    assert_lowered_equals(p, 2, inputs=inputs)


def test_buffers_are_read_in_another_order():
    with Program("p"):
        x = ops.input_stream("x", Tile(4, 2, bf16), (2, 3, 2))
        buffers = ops.bufferize(x, 2)
        unused(ops.streamify(buffers, repeat=2, shape=(2, 3), stride=(1, 2)), ops.streamify(buffers, repeat=1))
    assert_lowered_equals(x.program, 2, inputs={"x": tiles([[[0] * 2] * 3] * 2, 4, 2)})


@pytest.mark.parametrize("rows, cols", [(4, 2), (1, 4), (1, 1)])
@pytest.mark.parametrize("ref_rows", [1, 2])
def test_expand(rows, cols, ref_rows):
    with Program("p"):
        x = ops.input_stream("x", Tile(rows, cols, bf16), (3, 1, 1))
        ref = ops.input_stream("ref", Tile(ref_rows, ref_rows, bf16), (3, 2, 4))
        unused(ops.expand(x, ref, 2))
    assert_lowered_equals(x.program, 2, inputs={
        "x": tiles([[[0]]] * 3, rows, cols), "ref": tiles([[[0] * 4] * 2] * 3, ref_rows, ref_rows)})


def test_padding_flags_of_scalars_stay():
    with Program("p"):
        x = ops.input_stream("x", scalar(int32), (ragged("n"),))
        data, flags = ops.reshape(x, 3, pad=7)
        unused(data, ops.zip(data, flags))
    assert_lowered_equals(x.program, 2, inputs={"x": [1, 2, 3, 4]})


@pytest.mark.parametrize("count", [3, 4])
def test_padding_flags_of_tiles(count):
    """One flag for each logical tile, however many physical ones it has."""
    with Program("p"):
        x = ops.input_stream("x", Tile(4, 2, int32), (ragged("n"),))
        data, flags = ops.reshape(x, 3, pad=7, name="pack")
        unused(data, ops.repeat(flags, 2))
    assert_lowered_equals(x.program, 2, inputs={"x": [np.full((4, 2), i, np.int32) for i in range(count)]})


@pytest.mark.parametrize(("rows", "flag_rank"), [(1, 1), (2, 1), (4, 1), (4, 0)])
def test_padding_flags_that_leave_out_dimensions(rows, flag_rank):
    """Those that the program says and those of physical tiles."""
    with Program("p"):
        x = ops.input_stream("x", Tile(rows, rows, int32), (ragged("n"), 3))
        data, flags = ops.reshape(x, 2, dim=1, pad=7, flag_rank=flag_rank)
        unused(data, ops.repeat(flags, 2))
    # Hardware pads below two dimensions, those of the tile's grid included.
    assert_lowered_equals(x.program, 2, inputs={"x": tiles([[0] * 3] * 3, rows, rows, int32)})


def test_assumed_shapes_hold_in_the_lowered_program():
    with Program("p"):
        x = ops.input_stream("x", Tile(2, 2, bf16), (2, ragged("n")))
        y = ops.map(fn.scale(2.0), x).assume((2, 3))
        z = ops.map(fn.row_max(), y)     # needs static inner dimensions
        unused(z)
    assert_lowered_equals(x.program, 2, inputs={"x": tiles([[0] * 3] * 2, 2, 2)})


# Errors


def test_tile_that_does_not_divide():
    with Program("p") as p:
        x, y = p.tensor("x", (6, 8), bf16), p.tensor("y", (6, 8), bf16)
        ops.linear_offchip_store(ops.linear_offchip_load(x, (6, 8), name="load_x"), y)
    with pytest.raises(TileDoesNotDivide, match=r"load_x' \(test_lowering.py:\d+\): Tile\(6, 8, bf16\).*T = 4.*6 rows"):
        lower(p, 4)


def test_unsupported_tile_size():
    with pytest.raises(BadParameter, match="physical tile size: 3 vs one of 2, 4, 8, 16"):
        lower(swiglu.build(8, 16, 16, 4, 8), 3)


def test_dynamic_tile():
    with Program("p"):
        x = ops.input_stream("x", Tile(ragged("r"), 4, bf16), (2,))
        unused(ops.map(fn.silu(), x, name="act"))
    with pytest.raises(TypeMismatch, match=r"input_stream 'x'.*vs tiles of static size.*fix: give rows"):
        lower(x.program, 2)


def test_initial_state_that_differs_from_tile_to_tile():
    with Program("p"):
        x = ops.input_stream("x", Tile(2, 2, fp32), (2, 3))
        unused(ops.accum(fn.add(), x, rank=1, init=np.ones((2, 2)), name="sum"))
    with pytest.raises(BadParameter, match=r"accum 'sum'.*init: an array.*fix"):
        lower(x.program, 2)


# Routing


def routed(rows, cols, rank, **more):
    """Rows of tiles to three experts and back, and merged in order."""
    with Program("p") as p:
        x = ops.input_stream("x", Tile(rows, cols, bf16), (5, *(ragged(f"d{k}") for k in range(rank))))
        selector = ops.input_stream("selector", Selector(3), (5,))
        parts = ops.partition(x, selector, rank=rank)
        results = [ops.map(fn.scale(float(k)), part) for k, part in enumerate(parts)]
        data, names = ops.eager_merge(results, name="merge")
        unused(ops.reassemble(results, selector, rank, name="gather"), data, names)
    return p


SELECTORS = {0: [{0}, {0, 2}, set(), {1, 2}, {0, 1, 2}], 1: [{0}, {0, 2}, {1}, {1, 2}, {0, 1, 2}]}
TRACES = {0: {"gather": [0, 2, 0, 2, 1, 1, 2, 0], "merge": [0, 2, 1, 2, 0, 1, 2, 0]},
          1: {"gather": [0, 2, 0, 1, 2, 1, 1, 2, 0], "merge": [0, 2, 1, 1, 2, 0, 1, 2, 0]}}


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("rows, cols", [(4, 6), (2, 1), (1, 1)])
def test_routing(rows, cols, rank):
    """Selectors without a bit too, chunks without an element too; with one trace for both programs."""
    nested = [0] * 5 if rank == 0 else [[0, 0], [0], [], [0, 0, 0], []]
    inputs = {"x": tiles(nested, rows, cols), "selector": SELECTORS[rank]}
    for arbitration in (None, TRACES[rank]):
        assert_lowered_equals(routed(rows, cols, rank), 2, inputs=inputs, arbitration=arbitration)


def test_elements_that_meet_again_are_held():
    """Where an element is one beat it needs no buffer, nor where chunks of elements wait in the program itself."""
    def held(program):
        return [op.name for op in lower(program, 2).program.operators if op.kind == "bufferize"]

    assert len(held(routed(4, 6, 0))) == 3
    assert held(routed(1, 1, 0)) == held(routed(4, 6, 1)) == []


def test_streams_of_other_origin_are_not_held():
    with Program("p") as p:
        streams = [ops.input_stream(f"x{k}", Tile(4, 4, bf16), (3,)) for k in range(2)]
        unused(ops.eager_merge(streams)[0])
    assert all(op.kind != "bufferize" for op in lower(p, 2).program.operators)
