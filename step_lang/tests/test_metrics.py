"""Metrics: SPEC section 5, and the traffic of the paper's figure 8."""

import numpy as np
import pytest
import sympy

from examples import matmul, softmax, swiglu
from step_lang import (
    Program,
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
    ragged,
    scalar,
)

FIG8 = [(b, f) for b in (16, 32, 64) for f in (16, 32, 64, 128, 256)]


@pytest.mark.parametrize("tile_b, tile_f", FIG8)
def test_traffic_of_figure_8(tile_b, tile_f):
    B, D, F = 64, 256, 512
    found = metrics(swiglu.build(B, D, F, tile_b, tile_f))
    elements = B * D * (F // tile_f) + 3 * D * F * (B // tile_b) + B * D
    assert found.offchip_bytes == 2 * elements
    assert found.offchip_write_bytes == 2 * B * D
    matmuls = sum(row.flops for row in found.rows if "matmul" in row.name)
    assert matmuls == 3 * 2 * B * D * F


def test_megabytes_of_the_papers_axis():
    def megabytes(*tiles):
        return float(metrics(swiglu.build(64, 256, 512, *tiles)).offchip_bytes) * 2 / 2**20

    assert megabytes(16, 16) == pytest.approx(8.0625) and megabytes(64, 256) == pytest.approx(1.6875)


@pytest.mark.parametrize("program, module", [
    (swiglu.build(16, 32, 32, 8, 16), swiglu), (matmul.build(16, 16, 16, 4, 8, 8), matmul),
    (softmax.build(8, 16, 4), softmax)])
def test_measured_equals_symbolic(program, module):
    result, found = interpret(program, module.inputs(program)), metrics(program)
    assert result.offchip_read_bytes == found.offchip_read_bytes
    assert result.offchip_write_bytes == found.offchip_write_bytes
    assert result.flops == found.flops
    for row in found.rows:
        assert result.rows[row.name] == {
            "offchip_read_bytes": row.offchip_read_bytes, "offchip_write_bytes": row.offchip_write_bytes,
            "flops": row.flops}


def test_run_time_sizes_give_what_is_measured():
    with Program("p") as p:
        table = p.tensor("table", (4, 4), bf16)
        out = p.tensor("out", (64, 4), bf16)
        x = ops.input_stream("x", scalar(int32), (dynamic("D"), ragged("r")))
        tiles = ops.linear_offchip_load(table, (2, 4), ref=x, name="load")
        ops.linear_offchip_store(ops.map(fn.silu(), tiles), out)
    found = metrics(p)
    assert {str(s) for s in found.offchip_bytes.free_symbols} == {"#[D, r]"}
    for nested in ([[1, 2, 3], [], [4]], [[5]], []):
        result = interpret(p, {"table": np.ones((4, 4), bf16.numpy)}, {"x": nested})
        numbers = found.substitute(result.symbols)
        assert numbers.offchip_read_bytes == result.offchip_read_bytes
        assert numbers.offchip_write_bytes == result.offchip_write_bytes
        assert numbers.flops == result.flops
        assert result.symbols[dynamic("D")] == len(nested)


def build_fold(rank=1, inner=0):
    with Program("p") as p:
        a = ops.linear_offchip_load(p.tensor("a", (16, 64), bf16), (8, 8), shape=(2, 2, 4), stride=(8, 4, 1))
        b = ops.linear_offchip_load(p.tensor("b", (16, 64), bf16), (8, 8), shape=(2, 2, 4), stride=(8, 4, 1))
        c = ops.accum(fn.matmul(), a, b, rank=rank, inner=inner, name="fold", compute_bw=512)
        ops.linear_offchip_store(c, p.tensor("c", (64, 64), fp32))
    return p


def test_onchip_of_spec():
    row = {row.name: row for row in metrics(build_fold()).rows}["fold"]
    assert row.onchip_bytes == 16 * 8 * 2 + 8 * 8 * 2 + 8 * 8 * 4
    row = {row.name: row for row in metrics(build_fold(1, 1)).rows}["fold"]
    assert row.onchip_bytes == 16 * 8 * 2 + 8 * 8 * 2 + 4 * 8 * 8 * 4
    with Program("p") as p:
        x = ops.input_stream("x", Tile(2, 2, bf16), (dynamic("A"), dynamic("B")))
        ref = ops.input_stream("ref", scalar(int32), (dynamic("A"), dynamic("C")))
        y = ops.streamify(ops.bufferize(x, rank=1, name="buffer"), ref)
        ops.map(fn.matmul(), y, y, name="product")
        ops.scan(fn.add(), x, rank=1, name="sums")
        ops.expand(ops.repeat(ops.input_stream("v", Tile(4, 2, bf16), (dynamic("A"),)), 1), ref, rank=1, name="copies")
    onchip = {row.name: row.onchip_bytes for row in metrics(p).rows}
    assert onchip == {
        "x": 16, "ref": 8, "v": 32, "buffer": 8 + 16 * dynamic("B"), "streamify_0": 0, "product": 16 * 2 * 2 + 8,
        "sums": 8, "copies": 16, "repeat_0": 0}


def test_intensity_and_compute():
    found = metrics(build_fold())
    assert found.allocated_compute == 512
    assert found.operational_intensity == sympy.Rational(16 * 2 * 8**3, 2 * 16 * 128 + 4 * 256)
    assert metrics(softmax.build()).substitute({"compute_bw": 256}).allocated_compute == 6 * 256
    assert [s.name for s in metrics(softmax.build()).symbols] == ["compute_bw"]


def test_input_streams_are_traffic():
    with Program("p") as p:
        x = ops.input_stream("x", scalar(int32), (3,))
        ops.linear_offchip_store(x, p.tensor("y", (3, 1), int32))
    assert metrics(p).offchip_read_bytes == 12 and metrics(p).offchip_write_bytes == 12
    result = interpret(p, {}, {"x": TokenStream.from_nested([4, 5, 6], 0)})
    assert result.offchip_bytes == 24 and result.tensors["y"].tolist() == [[4], [5], [6]]


@pytest.mark.parametrize("values, largest", [([[1], [2, 3, 4], [5, 6]], 3), ([[], []], 0), ([], 0)])
def test_ragged_buffers_need_room_for_the_largest(values, largest):
    """Their size had no value, and `step-hw simulate` ended in a traceback."""
    with Program("p") as p:
        x = ops.input_stream("x", scalar(int32), (dynamic("n"), ragged("r")))
        buffers = ops.bufferize(x, rank=1, name="keep")
        ops.linear_offchip_store(ops.streamify(buffers, repeat=2), p.tensor("y", (12, 1), int32))
    found = metrics(p).substitute(interpret(p, {}, {"x": values}).symbols)
    [row] = [row for row in found.rows if row.name == "keep"]
    assert int(row.onchip_bytes) == 4 + 2 * largest * 4
    assert int(found.offchip_bytes) == 4 * 3 * sum(map(len, values))
