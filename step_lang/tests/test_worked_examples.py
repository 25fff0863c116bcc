"""SPEC section 3, every example."""

import numpy as np
import pytest

from step_lang import Buffer, Numerics, Program, int32, interpret, ops, parse_tokens
from step_lang.interpreter import Context
from step_lang.types import Tile
from step_lang.worked_examples import EXAMPLES


def run(program, inputs, arbitration=None):
    """Tokens of every stream, outputs unconsumed."""
    ctx = Context(Numerics(), {}, inputs, arbitration or {})
    values = {}
    for operator in program.topological():
        results = operator.interpret(ctx, [values[s.name] for s in operator.inputs])
        values.update((s.name, t.check()) for s, t in zip(operator.outputs, results, strict=True))
    return values


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_example(example):
    program, operator = example.build()
    values = run(program, {f"x{i}": tokens for i, tokens in enumerate(example.input_tokens())}, example.traces)
    assert operator.kind == example.kind
    for stream, expected in zip(operator.outputs, example.output_tokens(), strict=True):
        assert values[stream.name] == expected, f"{values[stream.name]!r} vs {expected!r}"


def test_bufferize():
    with Program("p") as program:
        refs = ops.bufferize(ops.input_stream("x", Tile(1, 1, int32), (1, 2, 2)), rank=1)
    tokens = run(program, {"x": parse_tokens("1 2 S1 3 S2 D")})[refs.name]
    assert tokens.stop.tolist() == [0, 1] and not tokens.empty.any() and tokens.rank == 1
    column = np.array([1, 2, 3], dtype=np.int32).reshape(3, 1, 1)
    assert tokens.data == [Buffer(np.array([0, 1], np.int8), column[:2]), Buffer(np.array([1], np.int8), column[2:])]


@pytest.mark.parametrize("ref, expected", [
    ("7 S1 D", "0 1 S1 2 3 S3 D"),
    ("7 8 S1 S1 D", "0 1 S1 2 3 S2 0 1 S1 2 3 S3 S3 D"),
    ("D", "D"),
])
def test_load_with_reference(ref, expected):
    with Program("p") as program:
        tensor = program.tensor("t", (2, 2), int32)
        reference = ops.input_stream("ref", Tile(1, 1, int32), (2, 3))
        tiles = ops.linear_offchip_load(tensor, (1, 1), ref=reference)
    ctx = Context(Numerics(), {"t": np.arange(4, dtype=np.int32).reshape(2, 2), }, {"ref": parse_tokens(ref, 1)}, {})
    ref_tokens = reference.producer.interpret(ctx, [])
    (tokens,) = tiles.producer.interpret(ctx, ref_tokens)
    assert tokens.check() == parse_tokens(expected, 3)
    assert ctx.offchip_read_bytes == 4 * ref_tokens[0].elements + 4 * tokens.elements


def test_load_without_reference():
    with Program("p") as program:
        tiles = ops.linear_offchip_load(program.tensor("t", (2, 2), int32), (1, 1))
        ops.linear_offchip_store(tiles, program.tensor("out", (2, 2), int32))
    result = interpret(program, {"t": np.arange(4, dtype=np.int32).reshape(2, 2)})
    assert result.stream(tiles) == parse_tokens("0 1 S1 2 3 S1 D", 1)
    assert np.array_equal(result.tensors["out"], [[0, 1], [2, 3]])
