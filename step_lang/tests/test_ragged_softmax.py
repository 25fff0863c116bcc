"""Softmax of rows of ragged length: bit for bit what its definition says, and over physical tiles as well."""

import numpy as np
import pytest

from examples import ragged_softmax
from step_lang import BadParameter, Numerics, ShapeMismatch, interpret, metrics
from step_lang import numerics as num
from step_lang.tests.lowered import assert_lowered_equals

NUMERICS = Numerics(group=4)
SMALL = {"blocks": 4, "tile_rows": 4, "tile_cols": 4, "capacity": 9}
LENGTHS = {
    "mixed": [[1, 8, 3, 5], [4, 4, 4, 4], [0, 0, 0, 0], [13, 1, 2, 16]],
    "first_is_empty": [[0, 0, 0, 0], [0, 0, 0, 0], [2, 2, 2, 2], [20, 12, 8, 4]],
    "none": [[0] * 4] * 4,
}


def softmax(x, rows, cols, places):
    """``y`` by the definitions of the numbers, block by block and tile by tile."""
    tiles = x.reshape(-1, rows, cols)
    y = []
    for first, count in places:
        block = tiles[first:first + count]
        if not count:
            continue
        largest = block[0].max(axis=1, keepdims=True)
        for tile in block[1:]:
            largest = num.maximum(largest, tile.max(axis=1, keepdims=True))
        powers = [num.unary("exp", num.sub(tile, np.broadcast_to(largest, tile.shape))) for tile in block]
        total = np.zeros((1, rows, 1), dtype=np.float32)
        for power in powers:
            total = NUMERICS.matmul(power[None], np.ones((1, cols, 1), dtype=x.dtype), total)
        total = num.cast(total[0], "bf16")
        y += [num.div(power, np.broadcast_to(total, power.shape)) for power in powers]
    whole = np.zeros_like(tiles)
    if y:
        whole[:len(y)] = y
    return whole.reshape(x.shape)


def check(program, lengths):
    tensors = ragged_softmax.ragged_rows(program, lengths)
    streams = ragged_softmax.block_streams(program, lengths)
    result = interpret(program, tensors, streams, NUMERICS)
    rows, cols = np.asarray(lengths).shape[1], program.tensors["x"].shape[1]
    expected = softmax(tensors["x"], rows, cols, list(zip(streams["first"], streams["tiles"])))
    assert result.tensors["y"].tobytes() == expected.tobytes()
    assert metrics(program).substitute(result.symbols).offchip_bytes == result.offchip_bytes
    assert result.offchip_bytes == 2 * sum(streams["tiles"]) * rows * cols * 2 + 8 * len(lengths)
    y = expected.reshape(-1, rows, cols)
    wanted = iter(ragged_softmax.reference(program, tensors, lengths))
    for first, count, block in zip(streams["first"], streams["tiles"], lengths):
        for row, length in enumerate(block):
            values = y[first:first + count, row].reshape(-1).astype(np.float64)
            assert np.abs(values[:length] - next(wanted)).max(initial=0) < 0.01
            assert not values[length:].any()
    return result


@pytest.mark.parametrize("name", LENGTHS)
def test_ragged_rows(name):
    check(ragged_softmax.build(**SMALL), LENGTHS[name])


def test_buffers_are_as_large_as_the_longest_block():
    program = ragged_softmax.build(**SMALL)
    result = check(program, LENGTHS["mixed"])
    rows = {row.name: row.onchip_bytes for row in metrics(program).substitute(result.symbols).rows}
    assert rows["keep_x"] == rows["keep_exp"] == (1 + 2 * 4) * 4 * 4 * 2


def test_made_lengths():
    for seed in range(4):
        program = ragged_softmax.build()
        lengths = ragged_softmax.row_lengths(program, seed)
        tiles = ragged_softmax.streams(program, seed)["tiles"]
        assert tiles[-1] == 0 and max(tiles) >= 2 * np.median(tiles) and sum(tiles) <= 32
        check(program, lengths.tolist())


@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize("name", LENGTHS)
def test_lowered(name, tile):
    program = ragged_softmax.build(**SMALL)
    assert_lowered_equals(program, tile, ragged_softmax.ragged_rows(program, LENGTHS[name]),
                          ragged_softmax.block_streams(program, LENGTHS[name]))


# Mistakes


@pytest.mark.parametrize("lengths, text", [
    ([[1] * 4] * 3, r"shape \[3, 4\] vs \[4, 4\]"),
    ([[12] * 4] * 4, "12 tiles vs room for 9"),
    ([[1, 0, 1, 1]] * 4, "a row of 0 elements vs at least 1"),
])
def test_wrong_lengths(lengths, text):
    with pytest.raises(BadParameter, match=text):
        ragged_softmax.block_streams(ragged_softmax.build(**SMALL), lengths)


def test_a_tile_more_than_there_is_room_for():
    program = ragged_softmax.build(**SMALL)
    tensors = ragged_softmax.ragged_rows(program, LENGTHS["mixed"])
    with pytest.raises(ShapeMismatch, match="tiles stored to tensor 'y': 10 vs 9 positions"):
        interpret(program, tensors, {"first": [0, 0, 0, 0], "tiles": [3, 3, 3, 1]}, NUMERICS)
