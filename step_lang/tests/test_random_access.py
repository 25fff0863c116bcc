"""random_offchip_load and random_offchip_store against numpy, their traffic, and addresses that are none."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from step_lang import (
    MisalignedStreams,
    Program,
    ProgramError,
    ShapeMismatch,
    Tile,
    TileDoesNotDivide,
    TypeMismatch,
    ViewOutOfRange,
    bf16,
    bool_,
    fn,
    int32,
    interpret,
    metrics,
    ops,
    ragged,
    scalar,
    u32,
)
from step_lang.tests.nested import flat, map_level, nested_streams

SETTINGS = settings(max_examples=100, deadline=None)
U32 = scalar(u32)


def tiles_of(array, rows, cols):
    """Tiles of ``array``, numbered row-major."""
    return [array[r:r + rows, c:c + cols] for r in range(0, array.shape[0], rows)
            for c in range(0, array.shape[1], cols)]


@SETTINGS
@given(nested_streams(0, 2), st.integers(1, 2), st.integers(1, 3))
def test_load(sample, rows, cols):
    rank, nested = sample
    addresses = map_level(lambda vector: [v % 6 for v in vector], nested, rank)
    with Program("p") as p:
        addr = ops.input_stream("addr", U32, tuple(ragged(f"d{k}") for k in range(rank + 1)))
        tiles = ops.random_offchip_load(addr, p.tensor("t", (2 * rows, 3 * cols), int32), (rows, cols), name="load")
        ops.linear_offchip_store(tiles, p.tensor("y", (64 * rows, cols), int32))
    table = np.arange(6 * rows * cols, dtype=np.int32).reshape(2 * rows, 3 * cols)
    result = interpret(p, {"t": table}, {"addr": addresses})
    assert result.stream(tiles).same_stops(result.stream(addr))
    chosen = [tiles_of(table, rows, cols)[a] for a in flat(addresses, rank)]
    assert np.array_equal(result.tensors["y"][:len(chosen) * rows], np.concatenate(chosen or [table[:0, :cols]]))
    found = metrics(p).substitute(result.symbols)
    row = next(row for row in found.rows if row.name == "load")
    assert row.offchip_read_bytes == result.rows["load"]["offchip_read_bytes"] == len(chosen) * rows * cols * 4
    assert row.onchip_bytes == 2 * rows * cols * 4 and row.offchip_write_bytes == 0


@SETTINGS
@given(nested_streams(0, 2), st.booleans())
def test_store(sample, given_contents):
    rank, nested = sample
    addresses = map_level(lambda vector: [v % 6 for v in vector], nested, rank)
    count = iter(range(1000))
    data = map_level(lambda vector: [np.full((2, 3), next(count), np.int32) for _ in vector], nested, rank)
    shape = tuple(ragged(f"d{k}") for k in range(rank + 1))
    with Program("p") as p:
        tensor = p.tensor("t", (4, 9), int32)
        addr = ops.input_stream("addr", U32, shape)
        values = ops.input_stream("values", Tile(2, 3, int32), shape)
        ack = ops.random_offchip_store(addr, values, tensor, name="store")
        assert ack.type == scalar(bool_) and ack.shape == shape
        flags = ops.map(fn.cast(u32), ack)
        ops.linear_offchip_store(flags, p.tensor("acks", (64, 1), u32))
    before = np.full((4, 9), -1, np.int32) if given_contents else np.zeros((4, 9), np.int32)
    result = interpret(p, {"t": before} if given_contents else {}, {"addr": addresses, "values": data})
    expected = before.copy()
    for a, tile in zip(flat(addresses, rank), flat(data, rank)):
        expected[a // 3 * 2:a // 3 * 2 + 2, a % 3 * 3:a % 3 * 3 + 3] = tile
    assert np.array_equal(result.tensors["t"], expected)
    assert np.array_equal(before, np.full((4, 9), -1 if given_contents else 0))  # the caller's array is not written
    written = len(flat(addresses, rank))
    assert result.tensors["acks"].ravel().tolist() == [1] * written + [0] * (64 - written)
    assert result.stream(ack).same_stops(result.stream(addr))
    row = next(row for row in metrics(p).substitute(result.symbols).rows if row.name == "store")
    assert row.offchip_write_bytes == result.rows["store"]["offchip_write_bytes"] == written * 24
    assert row.onchip_bytes == 48 and row.offchip_read_bytes == 0


def test_load_what_was_stored():
    """A tensor stored to and read at random, the read behind the acknowledgement; it need not be given."""
    with Program("p") as p:
        memory = p.tensor("memory", (8, 1), u32)
        addr = ops.input_stream("addr", U32, (4,))
        ack = ops.random_offchip_store(addr, ops.map(fn.mul(), addr, addr), memory)
        back = ops.random_offchip_load(ops.map(fn.mul(), addr, ops.map(fn.cast(u32), ack)), memory, (1, 1))
        ops.linear_offchip_store(back, p.tensor("y", (4, 1), u32))
    result = interpret(p, {}, {"addr": [5, 0, 7, 2]})
    assert result.tensors["y"].ravel().tolist() == [25, 0, 49, 4]
    assert result.tensors["memory"].ravel().tolist() == [0, 0, 4, 0, 0, 25, 0, 49]
    given = np.arange(100, 108, dtype=np.uint32).reshape(8, 1)
    result = interpret(p, {"memory": given}, {"addr": [5, 0, 7, 2]})
    assert result.tensors["memory"].ravel().tolist() == [0, 101, 4, 103, 104, 25, 106, 49]


# Mistakes


def message(error, call):
    with pytest.raises(error) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text and "(test_random_access.py:" in text
    return text


@pytest.mark.parametrize("bad", [6, 2**32 - 1])
def test_address_outside_the_tensor(bad):
    with Program("p") as p:
        addr = ops.input_stream("addr", U32, (3,))
        tiles = ops.random_offchip_load(addr, p.tensor("t", (4, 9), int32), (2, 3), name="load")
        ops.linear_offchip_store(tiles, p.tensor("y", (6, 3), int32))
    text = message(ViewOutOfRange, lambda: interpret(p, {"t": np.zeros((4, 9), np.int32)}, {"addr": [5, bad, 9]}))
    assert text.startswith("random_offchip_load 'load' (test_random_access.py:")
    assert f"address {bad} of element 1 vs tiles of tensor 't' 0..5; fix: " in text
    with Program("p") as p:
        addr = ops.input_stream("addr", U32, (3,))
        ack = ops.random_offchip_store(addr, addr, p.tensor("t", (6, 1), u32), name="store")
        ops.linear_offchip_store(ack, p.tensor("y", (3, 1), bool_))
    text = message(ViewOutOfRange, lambda: interpret(p, {}, {"addr": [5, bad, 9]}))
    assert text.startswith("random_offchip_store 'store'") and f"address {bad} of element 1 vs" in text


def test_addresses_and_data_out_of_step():
    with Program("p") as p:
        addr, data = (ops.input_stream(name, U32, (2, ragged("r"))) for name in ("addr", "data"))
        ack = ops.random_offchip_store(addr, data, p.tensor("t", (8, 1), u32))
        ops.linear_offchip_store(ack, p.tensor("y", (8, 1), bool_))
    text = message(MisalignedStreams, lambda: interpret(p, {}, {"addr": [[1], [2, 3]], "data": [[1, 2], [3]]}))
    assert "random_offchip_store" in text and "beat 0: element with stop 1 on 'addr' vs element with stop 0" in text


def test_mistakes_at_construction():
    with Program("p") as p:
        t = p.tensor("t", (8, 8), bf16)
        addr = ops.input_stream("addr", U32, (4,))
        signed = ops.input_stream("signed", scalar(int32), (4,))
        tiles = ops.random_offchip_load(addr, t, (4, 4))
        assert "Tile(1, 1, int32) vs Tile(1, 1, u32)" in message(
            TypeMismatch, lambda: ops.random_offchip_load(signed, t, (4, 4)))
        assert "3 x 4 does not divide 8 x 8" in message(
            TileDoesNotDivide, lambda: ops.random_offchip_load(addr, t, (3, 4)))
        assert "'t' vs a tensor" in message(TypeMismatch, lambda: ops.random_offchip_load(addr, "t", (4, 4)))
        out = p.tensor("out", (8, 8), bf16)
        assert "Tile(1, 1, int32) vs Tile(1, 1, u32)" in message(
            TypeMismatch, lambda: ops.random_offchip_store(signed, tiles, out))
        assert "[4, 2] vs [4]" in message(
            ShapeMismatch, lambda: ops.random_offchip_store(ops.repeat(addr, 2), tiles, out))
        assert "vs tiles of bf16" in message(TypeMismatch, lambda: ops.random_offchip_store(addr, signed, out))
        odd = p.tensor("odd", (8, 6), bf16)
        assert "does not divide" in message(TileDoesNotDivide, lambda: ops.random_offchip_store(addr, tiles, odd))


def test_linear_and_random_access_to_one_tensor_is_a_race():
    with Program("p") as p:
        t = p.tensor("t", (4, 1), u32)
        addr = ops.input_stream("addr", U32, (4,))
        ack = ops.random_offchip_store(addr, addr, t, name="store")
        ops.linear_offchip_store(ack, p.tensor("acks", (4, 1), bool_))
        ops.linear_offchip_store(ops.linear_offchip_load(t, (1, 1), name="load"), p.tensor("y", (4, 1), u32))
    text = message(ProgramError, p.check)
    assert "random_offchip_store 'store'" in text and "read by linear_offchip_load 'load'" in text
