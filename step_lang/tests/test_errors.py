"""Mistakes that concern a program as a whole, and how messages read."""

import numpy as np
import pytest

from step_lang import (
    DTYPES,
    BadParameter,
    Program,
    ProgramError,
    Selector,
    ShapeMismatch,
    StepError,
    TensorError,
    TileDoesNotDivide,
    TokenStream,
    Tuple,
    TypeMismatch,
    UnconnectedStream,
    UnknownFunction,
    UnusedStream,
    ViewOutOfRange,
    bf16,
    dynamic,
    errors,
    fn,
    int32,
    interpret,
    ops,
    ragged,
    scalar,
    u32,
)
from step_lang.lowering import lower


def message(error, make):
    with pytest.raises(error) as caught:
        make()
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_message_names_operator_line_values_and_fix():
    with Program("p") as p:
        t = p.tensor("weights", (10, 12), bf16)

        def load():
            ops.linear_offchip_load(t, (4, 4), name="load_w")

        text = message(TileDoesNotDivide, load)
    line = load.__code__.co_firstlineno + 1
    assert text.startswith(f"linear_offchip_load 'load_w' (test_errors.py:{line}): tile of tensor 'weights': 4 x 4 "
                           "does not divide 10 x 12; fix: ")
    assert p.operators == []


def test_every_error_is_a_step_error():
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), StepError)
    assert str(StepError("a: 1 vs 2", source="x/y.py:7", fix="make\nthem equal")) == (
        "y.py:7: a: 1 vs 2; fix: make them equal")


def test_unused_stream():
    with Program("p") as p:
        x = ops.input_stream("x", scalar(int32), (4,))
        ops.repeat(x, 2, name="twice")
    text = message(UnusedStream, lambda: interpret(p, {}, {"x": [1, 2, 3, 4]}))
    assert "repeat 'twice'" in text and "used by nobody" in text


def test_padding_flags_may_be_unused():
    with Program("p") as p:
        data, _ = ops.reshape(ops.input_stream("x", scalar(int32), (3,)), 2, pad=0)
        ops.linear_offchip_store(data, p.tensor("y", (4, 1), int32))
    assert interpret(p, {}, {"x": [1, 2, 3]}).tensors["y"].ravel().tolist() == [1, 2, 3, 0]


def test_empty_program():
    with Program("nothing") as p:
        pass
    assert "no operators" in message(ProgramError, p.check)


def test_streams_and_tensors_of_another_program():
    with Program("one") as one:
        x = ops.input_stream("x", scalar(int32), (4,))
        t = one.tensor("t", (4, 1), int32)
    with Program("two"):
        y = ops.input_stream("y", scalar(int32), (4,))
        assert "'one' vs 'two'" in message(UnconnectedStream, lambda: ops.zip(y, x))
        assert "'one' vs 'two'" in message(UnconnectedStream, lambda: ops.linear_offchip_store(y, t))
    assert "outside of a program" in message(ProgramError, lambda: ops.input_stream("z", scalar(int32), (4,)))


def test_read_and_written_tensor():
    with Program("p") as p:
        t = p.tensor("t", (4, 1), int32)
        ops.linear_offchip_store(ops.linear_offchip_load(t, (1, 1), name="again"), t)
    assert "tensor 't': written here vs read by linear_offchip_load 'again'" in message(ProgramError, p.check)


def test_names():
    with Program("p") as p:
        x = ops.input_stream("x", scalar(int32), (4,))
        assert "used twice" in message(ProgramError, lambda: ops.repeat(x, 2, name="x"))
        assert "'a b'" in message(BadParameter, lambda: ops.repeat(x, 2, name="a b"))
        p.tensor("t", (1, 1), bf16)
        assert "declared twice" in message(ProgramError, lambda: p.tensor("t", (1, 1), bf16))
        assert "tensor 'x' vs the input stream of that name" in message(
            ProgramError, lambda: p.tensor("x", (1, 1), bf16))
        assert "input stream 't' vs the tensor of that name" in message(
            ProgramError, lambda: ops.input_stream("t", scalar(int32), (4,)))
        assert "'repeat_9'" in message(ProgramError, lambda: p.operator("repeat_9"))
    assert "identifier" in message(BadParameter, lambda: Program("no good"))


def test_tensor_declarations():
    with Program("p") as p:
        assert "(4, 0)" in message(TensorError, lambda: p.tensor("a", (4, 0), bf16))
        assert "4 vs (rows, cols)" in message(TensorError, lambda: p.tensor("a", 4, bf16))
        assert "'float'" in message(TensorError, lambda: p.tensor("a", (4, 4), "float"))


def test_views():
    with Program("p") as p:
        t = p.tensor("t", (8, 8), bf16)

        def load(**view):
            return message(StepError, lambda: ops.linear_offchip_load(t, (4, 4), **view))

        assert "indices 0..4 vs tiles of tensor 't' 0..3" in load(shape=(3, 2), stride=(2, 0))
        assert "indices -1..0" in load(shape=(2,), stride=(-1,))
        assert "1 sizes vs 2 strides" in load(shape=(2,), stride=(1, 1))
        assert "without a shape" in load(stride=(1,))
        assert "0 vs an int of at least 1" in load(shape=(0,))
        with pytest.raises(ViewOutOfRange):
            ops.linear_offchip_load(t, (4, 4), shape=(5,))
        out = p.tensor("out", (8, 8), bf16)
        tiles = ops.linear_offchip_load(t, (4, 4))

        def store(stream=tiles, tensor=out, **options):
            return message(StepError, lambda: ops.linear_offchip_store(stream, tensor, **options))

        assert "4 vs 2 positions" in store(shape=(2,))
        assert "4 tiles vs 2 positions" in store(shape=(2, 2), stride=(0, 1))
        assert "Tile(4, 4, bf16) vs Tile(2, 2, bf16)" in store(tile=(2, 2))
        assert "bf16" in store(tensor=p.tensor("ints", (8, 8), int32))
        assert "'t' vs a tensor" in store(tensor="t")


def test_unknown_function():
    assert "swish" in message(UnknownFunction, lambda: fn.swish())
    with Program("p"):
        x = ops.input_stream("x", scalar(int32), (4,))
        text = message(TypeMismatch, lambda: ops.map(fn.silu(), x))
    assert text.startswith("map 'map_0' (test_errors.py:")


def test_a_rewrite_keeps_the_users_line():
    with Program("p") as p, p.sourced("user.py:7"):
        x = ops.input_stream("x", scalar(int32), (4,))
        assert "(user.py:7)" in message(BadParameter, lambda: ops.repeat(x, 0))
    assert x.source == "user.py:7"


@pytest.mark.parametrize("name", ["straße", "ﬁ", "_x", "__init__", "1a", "a b", "", 3])
def test_names_that_verilog_cannot_have(name):
    with Program("p") as p:
        x = p.tensor("x", (4, 4), bf16)
        for make in (lambda: Program(name), lambda: p.tensor(name, (4, 4), bf16),
                     lambda: ops.linear_offchip_load(x, (4, 4), name=name),
                     lambda: ops.input_stream(name, scalar(int32), (2,))):
            assert f"name: {name!r} vs an identifier; fix: use letters" in message(BadParameter, make)


@pytest.mark.parametrize("dtype, pad, said", [
    ("u32", 1.5, "an integer"), ("u32", -1, "the range of u32"), ("int8", 300, "the range of int8"),
    ("bf16", "a", "number"), ("bool", 2, "the range of bool"), ("u32", float("nan"), "an integer"),
    ("u32", [1, 2], "shape (2,)"),
])
def test_padding_that_the_element_type_does_not_have(dtype, pad, said):
    """It was cast, so that a pad of -1 was stored as 4294967295 and one of 1.5 as 1."""
    with Program("p"):
        x = ops.input_stream("x", scalar(DTYPES[dtype]), (3,))
        text = message(BadParameter, lambda: ops.reshape(x, 2, pad=pad, name="chunks"))
    assert text.startswith("reshape 'chunks' (test_errors.py:") and "pad: " in text and said in text


@pytest.mark.parametrize("type_, value, said", [
    (scalar(u32), None, "value None vs a number of u32"), (scalar(u32), "7", "value '7' vs a number"),
    (scalar(u32), 1 << 32, "value 4294967296 vs integers 0..4294967295, the range of u32"),
    (scalar(u32), -1, "value -1 vs integers"), (scalar(u32), 1.5, "value 1.5 vs integers"),
    (scalar(u32), float("nan"), "value nan vs integers"), (scalar(DTYPES["bool"]), 2, "value 2 vs 0..1"),
    (scalar(u32), {1}, "value {1} vs a number"), (scalar(u32), [1, 2], "value of shape [2] vs Tile(1, 1, u32)"),
    (Selector(3), 1, "selector 1 vs a set of bits 0..2; fix: give {1} for one bit"),
    (Selector(3), None, "selector None vs a set"), (Selector(3), {3}, "selector {3} vs bits 0..2"),
    (Selector(3), {-1}, "selector {-1} vs bits"), (Selector(3), {"a"}, "selector {'a'} vs bits"),
    (Selector(3), [1, 0], "selector of shape [2] vs 3 bits"), (Selector(3), [0, 1, 2], "vs 3 bits of 0 or 1"),
    (Selector(3), "abc", "selector 'abc' vs a set"), (Tuple((scalar(u32), Selector(2))), (1, 1), "selector 1 vs"),
    (Tuple((scalar(u32), Selector(2))), 1, "value 1 vs a tuple of 2"),
])
def test_values_that_an_input_stream_cannot_have(type_, value, said):
    """Through the interpreter and through lowering, which simulate uses without interpreting: the same message."""
    with Program("p") as p:
        x = ops.input_stream("x", type_, (1,))
        ops.flatten(ops.repeat(x, 1), 0, 1).optional = True
    for use in (lambda: interpret(p, {}, {"x": [value]}), lambda: lower(p, 2).physical_inputs({"x": [value]})):
        text = message(TensorError, use)
        assert text.startswith("input_stream 'x' (test_errors.py:") and said in text


def test_numbers_of_numpy_are_values():
    for made in (np.arange(3), np.arange(3.0), [np.int8(0), np.float32(1), 2]):
        tokens = TokenStream.from_nested(made, 0, scalar(u32))
        assert tokens.data.reshape(-1).tolist() == [0, 1, 2] and tokens.data.dtype == np.uint32
    bits = TokenStream.from_nested([{np.int64(1)}, np.array([1, 0]), [True, True]], 0, Selector(2))
    assert bits.data.tolist() == [[False, True], [True, False], [True, True]]


@pytest.mark.parametrize("shape, values, said", [
    ((3,), [1, 2], "D_0 is 2 at run time vs 3"), ((2, 2), [[1, 2], [3]], "D_0 is 1 at run time vs 2"),
    ((2, ragged("r")), [[1], [2], [3]], "D_1 is 3 at run time vs 2"),
    ((dynamic("n"), dynamic("m")), [[1], [2, 3]], "D_0 is 2 at run time vs m = 1"),
])
def test_lowering_checks_shapes_of_the_hosts_values(shape, values, said):
    """The model took sizes from the shape, whatever values there were."""
    with Program("p") as p:
        x = ops.input_stream("x", scalar(u32), shape)
        ops.repeat(x, 1).optional = True
    text = message(ShapeMismatch, lambda: lower(p, 2).physical_inputs({"x": values}))
    assert text.startswith("input_stream 'x' (test_errors.py:") and said in text


def test_two_linear_stores_to_a_tensor():
    """Which of them was last depended on timing: interpreter and RTL differed."""
    with Program("p") as p:
        x, y = ops.input_stream("x", scalar(u32), (2,)), p.tensor("y", (4, 1), u32)
        ops.linear_offchip_store(x, y, name="first")
        ops.linear_offchip_store(ops.repeat(x, 2), y, name="second")
    text = message(ProgramError, p.check)
    assert text.startswith("linear_offchip_store 'second' (test_errors.py:")
    assert "tensor 'y': written here vs by linear_offchip_store 'first' (" in text and "fix: " in text


def test_numbers_of_numpy_are_parameters():
    """Some parameters took them, others said ``np.int64(4) vs 1..128``."""
    two, four = np.int64(2), np.int64(4)
    for made, same in (
        (Selector(four), Selector(4)), (fn.split_rows(rows=two), fn.split_rows(rows=2)),
        (fn.append_row(capacity=four), fn.append_row(capacity=4)), (fn.scale(np.float32(2)), fn.scale(2.0)),
        (fn.address_range(stride=two), fn.address_range(stride=2)),
        (fn.affine_addresses((two, four), (four, np.int8(1)), two, four), fn.affine_addresses((2, 4), (4, 1), 2, 4)),
    ):
        assert repr(made) == repr(same)
    with Program("p") as p:
        assert repr(p.tensor("x", (two, four), bf16)) == "<Tensor x 2 x 4 bf16>"
        for shape in ((True, 4), (np.bool_(True), 4), (2.0, 4), ([2], 4), (np.ones(2, int), 4), (0, 4), 8):
            assert "shape of tensor 'y'" in message(TensorError, lambda shape=shape: p.tensor("y", shape, bf16))
        assert "fix: give step_lang.DTYPES['u32']" in message(TensorError, lambda: p.tensor("y", (2, 4), "u32"))


def test_values_of_a_stream_that_is_no_input():
    with Program("p") as p:
        x = ops.input_stream("x", scalar(int32), (2,))
        ops.linear_offchip_store(ops.repeat(x, 2, name="twice"), p.tensor("y", (4, 1), int32))
    for name in ("w", "twice"):
        assert f"input stream '{name}': given vs the program's x" in message(
            TensorError, lambda name=name: interpret(p, {}, {"x": [1, 2], name: [1]}))


def load_again(x, shape):
    return ops.linear_offchip_load(x.program.tensor("t", (1, 1), u32), (1, 1), ref=x, shape=shape, stride=(0,))


@pytest.mark.parametrize("made, value, kind", [
    (lambda x: ops.repeat(x, 1 << 30), 1, "repeat"), (lambda x: ops.reshape(x, 1 << 30, pad=0)[0], 1, "reshape"),
    (lambda x: ops.flat_map(fn.counter(), x), 1 << 30, "flat_map"),
    (lambda x: ops.flat_map(fn.address_range(), ops.zip(x, x)), 1 << 30, "flat_map"),
    (lambda x: ops.flat_map(fn.affine_addresses((1 << 30,)), x), 1, "flat_map"),
    (lambda x: ops.streamify(ops.bufferize(ops.repeat(x, 2), 1), repeat=1 << 30), 1, "streamify"),
    (lambda x: ops.streamify(ops.bufferize(ops.repeat(x, 1 << 16), 1), repeat=1 << 14), 1, "streamify"),
    (lambda x: load_again(x, (1 << 30,)), 1, "linear_offchip_load"),
])
def test_a_count_at_run_time_that_no_memory_holds(made, value, kind):
    """Told before the memory is asked for: the machine may promise it, and stop when it is written."""
    with Program("p") as p:
        made(ops.input_stream("x", scalar(u32), (dynamic("n"),))).optional = True
    text = message(ProgramError, lambda: interpret(p, {"t": np.zeros((1, 1), np.uint32)} if p.tensors else {},
                                                   {"x": [value]}))
    assert text.startswith(f"{kind} '{kind}_0' (test_errors.py:")
    assert " elements vs 134217728, the most that the interpreter keeps; fix: use smaller counts" in text


def test_a_count_that_no_memory_holds():
    with Program("p") as p:
        x = ops.input_stream("x", scalar(int32), (1,))
        many = ops.repeat(x, 1 << 40, name="many")
        ops.linear_offchip_store(ops.accum(fn.max(), many, rank=1), p.tensor("y", (1, 1), int32))
    text = message(ProgramError, lambda: interpret(p, {}, {"x": [1]}))
    assert text.startswith("repeat 'many' (test_errors.py:") and "1099511627776 elements vs " in text
