"""The function library: types, values, folds, costs and the errors of a wrong use."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import sympy

from step_lang import Program, fn, interpret, ops
from step_lang import numerics as num
from step_lang.dims import dynamic, ragged
from step_lang.errors import BadParameter, StreamProtocolError, TypeMismatch, UnknownFunction
from step_lang.lowering import lower
from step_lang.numerics import Numerics
from step_lang.types import DTYPES, Selector, Tile, bf16, bool_, fp16, fp32, int8, int32, u32

NUM = Numerics(4)


def tiles(seed: int, *shape: int, dtype=bf16) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if dtype.is_float:
        return rng.standard_normal(shape).astype(np.float32).astype(dtype.numpy)
    info = np.iinfo(dtype.numpy)
    return rng.integers(info.min, info.max, shape, endpoint=True).astype(dtype.numpy)


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def test_names():
    assert fn.names() == sorted([
        "add", "address_range", "affine_addresses", "append_row", "cast", "concat_cols", "concat_rows", "counter",
        "div", "exp", "gelu", "last", "matmul", "max", "mul", "reciprocal", "row_max", "row_sum", "rsqrt", "scale",
        "selector_index", "set_offset", "sigmoid", "silu", "split_rows", "sub",
    ])
    for name in fn.names():
        assert issubclass(getattr(fn, name), fn.Function) and getattr(fn, name).name == name


def test_unknown_function_names_the_known():
    with pytest.raises(UnknownFunction, match=r"'softmax' vs the known ones; fix: use one of add, .*split_rows, sub"):
        fn.get("softmax")
    with pytest.raises(UnknownFunction, match="'sofmax'"):
        fn.sofmax  # noqa: B018
    with pytest.raises(BadParameter, match="transposed"):
        fn.get("matmul", transposed=True)


def test_identity():
    assert fn.matmul() == fn.get("matmul", transpose_b=False) != fn.matmul(transpose_b=True)
    assert hash(fn.scale(2.0)) == hash(fn.scale(2.0)) and fn.add() != fn.sub()
    assert str(fn.matmul(transpose_b=True)) == "matmul(transpose_b=True)" and str(fn.silu()) == "silu"


# matmul


def test_matmul_types():
    f = fn.matmul()
    m = dynamic("m")
    assert f.result_type(Tile(m, 8, bf16), Tile(8, 4, bf16)) == Tile(m, 4, fp32)
    assert f.result_type(Tile(2, 8, int8), Tile(8, 4, int8)) == Tile(2, 4, int32)
    assert fn.matmul(transpose_b=True).result_type(Tile(2, 8, bf16), Tile(4, 8, bf16)) == Tile(2, 4, fp32)
    assert f.flops(Tile(m, 8, bf16), Tile(8, 4, bf16)) == 64 * m
    assert f.onchip(Tile(64, 256, bf16), Tile(256, 64, bf16)) == 16 * 256 * 2 + 256 * 64 * 2
    assert f.onchip(Tile(64, 256, bf16), Tile(256, 64, bf16), accum=True) == 16 * 512 + 256 * 128 + 64 * 64 * 4


@pytest.mark.parametrize("types,message", [
    ((Tile(2, 8, bf16), Tile(4, 8, bf16)), "8 cols of A vs 4 rows of B"),
    ((Tile(2, 8, bf16), Tile(8, 4, int8)), "bf16 vs int8"),
    ((Tile(2, 8, fp32), Tile(8, 4, fp32)), "fp32 vs bf16 or int8"),
])
def test_matmul_type_errors(types, message):
    with pytest.raises(TypeMismatch, match=message):
        fn.matmul().result_type(*types)


def test_arity_and_kinds_are_checked():
    with pytest.raises(BadParameter, match="takes 2 streams vs 1 given"):
        fn.matmul().result_type(Tile(2, 8, bf16))
    with pytest.raises(BadParameter, match="takes tiles vs"):
        fn.exp().result_type(Selector(4))
    with pytest.raises(BadParameter, match="transpose_b: 1 vs True or False"):
        fn.matmul(transpose_b=1)


def test_matmul_values():
    a, b = tiles(1, 3, 5, 12), tiles(2, 3, 12, 7)
    expected = NUM.matmul(a, b)
    assert same(fn.matmul().apply(NUM, a, b), expected)
    assert same(fn.matmul(transpose_b=True).apply(NUM, a, np.swapaxes(b, 1, 2)), expected)
    assert np.allclose(expected, a.astype(np.float64) @ b.astype(np.float64), atol=1e-5)


@pytest.mark.parametrize("dtype", [bf16, int8])
def test_matmul_accum_is_one_long_fold(dtype):
    """Folding K/4 chunks of K in accum equals the matmul over the whole K, bit for bit (DESIGN section 5)."""
    f = fn.matmul()
    a, b = tiles(3, 1, 5, 32, dtype=dtype), tiles(4, 1, 32, 6, dtype=dtype)
    chunks_a = np.concatenate(np.split(a, 4, axis=2))
    chunks_b = np.concatenate(np.split(b, 4, axis=1))
    types = Tile(5, 8, dtype), Tile(8, 6, dtype)
    contributions = f.contribution(NUM, chunks_a, chunks_b)
    state = f.initial(None, *types)[None]
    for i in range(4):
        state = f.combine(NUM, state, contributions[i : i + 1])
    assert same(state, f.apply(NUM, a, b))


# Elementwise


@pytest.mark.parametrize("name", ["add", "sub", "mul", "max"])
@pytest.mark.parametrize("dtype", [bf16, fp32, int8, int32, u32], ids=str)
def test_binary_broadcasting(name, dtype):
    f = fn.get(name)
    full, column, row = tiles(1, 2, 3, 5, dtype=dtype), tiles(2, 2, 3, 1, dtype=dtype), tiles(3, 2, 1, 5, dtype=dtype)
    for other in (full[::-1], column, row):
        wide = np.ascontiguousarray(np.broadcast_to(other, full.shape))
        got = f.apply(NUM, full, other)
        assert same(got, f.apply(NUM, full, wide))
        types = Tile(3, 5, dtype), Tile(*other.shape[1:], dtype)
        assert f.result_type(*types) == f.result_type(*types[::-1]) == Tile(3, 5, dtype)
        assert f.flops(*types) == 15
        reference = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum}[name]
        assert np.array_equal(got, reference(full, other))


def test_binary_dynamic_dims():
    r, m = ragged("r"), dynamic("m")
    assert fn.add().result_type(Tile(m, 4, bf16), Tile(m, 1, bf16)) == Tile(m, 4, bf16)
    assert fn.add().result_type(Tile(r, 4, bf16), Tile(r, 4, bf16)) == Tile(r, 4, bf16)
    assert fn.mul().flops(Tile(m, 4, bf16), Tile(m, 1, bf16)) == 4 * m


@pytest.mark.parametrize("types,message", [
    ((Tile(2, 8, bf16), Tile(3, 8, bf16)), "add rows: 2 vs 3"),
    ((Tile(2, 8, bf16), Tile(2, 4, bf16)), "add cols: 8 vs 4"),
    ((Tile(2, 8, bf16), Tile(2, 8, fp32)), "bf16 vs fp32"),
    ((Tile(2, 8, fp16), Tile(2, 8, fp16)), "fp16 vs bf16"),
])
def test_binary_type_errors(types, message):
    with pytest.raises(TypeMismatch, match=message):
        fn.add().result_type(*types)


def test_div():
    a, b = tiles(5, 2, 3, 4), tiles(6, 2, 3, 1)
    assert same(fn.div().apply(NUM, a, b), num.div(a, b))
    with pytest.raises(TypeMismatch, match="div of element type fp32 vs bf16; fix: convert it first"):
        fn.div().result_type(Tile(2, 2, fp32), Tile(2, 2, fp32))
    with pytest.raises(UnknownFunction, match="'div' vs one that accum and scan can fold"):
        fn.div().state_type(Tile(2, 2, bf16))


@pytest.mark.parametrize("name,neutral", [("add", 0.0), ("mul", 1.0), ("max", -np.inf)])
def test_binary_folds(name, neutral):
    f = fn.get(name)
    assert f.foldable
    x = tiles(7, 4, 2, 3, dtype=fp32)
    state = f.initial(None, Tile(2, 3, fp32))
    assert state.shape == (2, 3) and (state == neutral).all()
    state = state[None]
    for i in range(4):
        state = f.combine(NUM, state, f.contribution(NUM, x[i : i + 1]))
    expected = x[0]
    for i in range(1, 4):
        expected = f.apply(NUM, expected[None], x[i : i + 1])[0]
    assert same(state[0], expected)


def test_max_neutral_of_integers():
    assert fn.max().initial(None, Tile(1, 1, int8)).tolist() == [[-128]]
    assert fn.max().initial(None, Tile(1, 1, u32)).tolist() == [[0]]


def test_init_is_checked():
    tile = Tile(2, 3, int8)
    assert fn.add().initial(5, tile).tolist() == [[5] * 3] * 2
    assert fn.add().initial([[1, 2, 3], [4, 5, 6]], tile).tolist() == [[1, 2, 3], [4, 5, 6]]
    assert fn.add().initial(1, Tile(dynamic("m"), 3, bf16)).shape == (1, 3)
    with pytest.raises(BadParameter, match=r"shape \(1, 3\) vs \(2, 3\)"):
        fn.add().initial([[1, 2, 3]], tile)
    with pytest.raises(BadParameter, match=r"200 vs -128..127"):
        fn.add().initial(200, tile)
    with pytest.raises(BadParameter, match=r"1\.5 vs an integer"):
        fn.add().initial(1.5, tile)
    with pytest.raises(BadParameter, match="'x' vs a number"):
        fn.add().initial("x", tile)


# Unary


@pytest.mark.parametrize("name", ["exp", "silu", "sigmoid", "gelu", "rsqrt", "reciprocal"])
def test_unary(name):
    f = fn.get(name)
    x = tiles(8, 2, 3, 4)
    assert same(f.apply(NUM, x), num.unary(name, x))
    assert f.result_type(Tile(3, 4, bf16)) == Tile(3, 4, bf16) and f.flops(Tile(3, 4, bf16)) == 12
    with pytest.raises(TypeMismatch, match=f"{name} of element type fp32 vs bf16"):
        f.result_type(Tile(3, 4, fp32))


def test_scale():
    x = tiles(9, 2, 3, 4)
    got = fn.scale(0.1).apply(NUM, x)
    assert same(got, num.mul(x, np.full(x.shape, 0.1).astype(ml_dtypes.bfloat16)))
    assert fn.scale(3).apply(NUM, np.array([[[50]]], np.int8)).item() == 150 - 256
    with pytest.raises(BadParameter, match=r"0.5 vs an integer, for element type int8"):
        fn.scale(0.5).result_type(Tile(1, 1, int8))
    with pytest.raises(BadParameter, match="nan vs a finite number"):
        fn.scale(float("nan"))


def test_cast():
    x = np.array([[[1.5, 2.5, -300, np.nan]]], dtype=np.float32)
    assert fn.cast("int8").apply(NUM, x).tolist() == [[[2, 2, -128, 0]]]
    assert fn.cast(DTYPES["bf16"]) == fn.cast("bf16")
    assert fn.cast("bf16").result_type(Tile(2, 4, fp32)) == Tile(2, 4, bf16)
    assert fn.cast("int32").result_type(Tile(2, 4, bool_)) == Tile(2, 4, int32)
    with pytest.raises(BadParameter, match="'fp8' vs one of bf16, fp32, int8, int32, u32"):
        fn.cast("fp8")
    with pytest.raises(TypeMismatch, match="fp16"):
        fn.cast("fp32").result_type(Tile(2, 4, fp16))


# Rows


def test_row_sum_is_matmul_with_ones():
    x = tiles(10, 2, 3, 10)
    ones = np.ones((2, 10, 1), dtype=x.dtype)
    assert same(fn.row_sum().apply(NUM, x), NUM.matmul(x, ones))
    assert fn.row_sum().result_type(Tile(3, 10, bf16)) == Tile(3, 1, fp32)
    assert fn.row_sum().flops(Tile(3, 10, bf16)) == 30


@pytest.mark.parametrize("dtype", [int8, int32])
def test_row_sum_integers_wrap(dtype):
    x = tiles(11, 2, 3, 9, dtype=dtype)
    got = fn.row_sum().apply(NUM, x)
    exact = x.astype(object).sum(axis=2, keepdims=True)
    assert got.dtype == np.int32 and got.shape == (2, 3, 1) and ((got.astype(object) - exact) % 2**32 == 0).all()


def test_row_sum_accum_is_one_long_fold():
    f = fn.row_sum()
    x = tiles(12, 1, 3, 24)
    parts = f.contribution(NUM, np.concatenate(np.split(x, 3, axis=2)))
    state = f.initial(None, Tile(3, 8, bf16))[None]
    for i in range(3):
        state = f.combine(NUM, state, parts[i : i + 1])
    assert same(state, f.apply(NUM, x))
    with pytest.raises(TypeMismatch, match="row_sum of element type fp32"):
        f.result_type(Tile(3, 8, fp32))


@pytest.mark.parametrize("dtype", [bf16, fp32, int8, int32, u32], ids=str)
@pytest.mark.parametrize("cols", [1, 2, 5, 16])
def test_row_max(dtype, cols):
    x = tiles(13, 2, 3, cols, dtype=dtype)
    assert np.array_equal(fn.row_max().apply(NUM, x), x.max(axis=2, keepdims=True))


def test_row_max_special_and_accum():
    f = fn.row_max()
    x = np.array([[[-0.0, 0.0, -1.0], [np.nan, 3.0, np.inf], [-np.inf, -2.0, -3.0]]], dtype=np.float32)
    got = f.apply(NUM, x)
    assert got.view(np.uint32)[0, :, 0].tolist() == [0, 0x7FC00000, 0xC0000000]
    state = f.initial(None, Tile(3, 3, fp32))
    assert state.tolist() == [[-np.inf]] * 3
    assert same(f.combine(NUM, state[None], f.contribution(NUM, x)), got)


# Concatenation


@pytest.mark.parametrize("name,axis", [("concat_rows", 1), ("concat_cols", 2)])
def test_concat(name, axis):
    f = fn.get(name)
    x = tiles(14, 6, 2, 3)
    steps = [x[0:2], x[2:4], x[4:6]]
    assert same(f.fold_all(NUM, steps), np.concatenate(steps, axis=axis))
    assert same(f.apply(NUM, *steps[:2]), np.concatenate(steps[:2], axis=axis))
    rows, cols = (6, 3) if axis == 1 else (2, 9)
    assert f.grows and f.state_type(Tile(2, 3, bf16), count=3) == Tile(rows, cols, bf16)
    assert f.initial(None, Tile(2, 3, bf16)).tolist() == [[0] * 3] * 2
    assert f.flops(Tile(2, 3, bf16)) == 0


def test_concat_dynamic_types():
    n = ragged("n")
    assert fn.concat_rows().state_type(Tile(1, 8, bf16), count=n) == Tile(n, 8, bf16)
    assert fn.concat_rows().result_type(Tile(n, 8, bf16), Tile(2, 8, bf16)).rows == n + 2
    assert isinstance(fn.concat_rows().state_type(Tile(1, 8, bf16)).rows, sympy.Symbol)
    with pytest.raises(TypeMismatch, match="concat_rows cols: 8 vs 4"):
        fn.concat_rows().result_type(Tile(2, 8, bf16), Tile(2, 4, bf16))


@pytest.mark.parametrize(("name", "rows", "cols", "across"), [
    ("concat_rows", 2, 6, "cols: 3 vs 6"), ("concat_cols", 4, 3, "rows: 2 vs 4"), ("append_row", 1, 4, "cols: 3 vs 4")])
def test_tiles_whose_sizes_at_run_time_do_not_join(name, rows, cols, across):
    """Both sizes may be open in the types."""
    f, pair = fn.get(name), (tiles(15, 1, 2, 3), tiles(16, 1, rows, cols))
    with pytest.raises(TypeMismatch, match=f"{name} {across}; fix: join tiles of the same {across[:4]}"):
        f.apply(NUM, *pair)
    if f.grows:
        with pytest.raises(TypeMismatch, match=f"{name} {across}"):
            f.fold_all(NUM, pair)


# Selectors


def test_selector_index():
    f = fn.selector_index()
    bits = np.zeros((3, 100), dtype=bool)
    bits[[0, 1, 2], [99, 0, 64]] = True
    assert f.result_type(Selector(100)) == Tile(1, 1, u32) and f.flops(Selector(100)) == 0
    assert same(f.apply(NUM, bits), np.array([99, 0, 64], dtype=np.uint32).reshape(3, 1, 1))
    with pytest.raises(TypeMismatch, match=r"selector_index of Tile\(1, 1, u32\) vs a Selector"):
        f.result_type(Tile(1, 1, u32))
    bits[1, [5, 6]] = True
    with pytest.raises(StreamProtocolError, match=r"selector \{0, 5, 6\} of element 1 vs one set bit; fix: "):
        f.apply(NUM, bits)
    bits[1] = False
    with pytest.raises(StreamProtocolError, match=r"selector \{\} of element 1"):
        f.apply(NUM, bits)


def test_selector_index_in_a_program():
    with Program("p") as program:
        selector = ops.input_stream("selector", Selector(4), (3,))
        out = ops.map(fn.selector_index(), selector, name="index")
        ops.linear_offchip_store(out, program.tensor("y", (3, 1), u32))
    for each in (program, lower(program, 2).program):
        assert interpret(each, {}, {"selector": [{2}, {0}, {3}]}).tensors["y"].ravel().tolist() == [2, 0, 3]
    with pytest.raises(StreamProtocolError, match=r"'index'.*selector \{1, 3\} of element 1"):
        interpret(program, {}, {"selector": [{2}, {1, 3}, {3}]})
