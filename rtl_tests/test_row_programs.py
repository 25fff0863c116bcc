"""Whole programs whose tiles have dynamic rows, by trim_rows, unpack_rows and pack_rows: RTL, model, interpreter."""

import pytest

from examples.data import random_tensors
from rtl_tests.cosim import check, run_rtl
from sim.prediction import predict
from step_hw.design import Design
from step_lang import Program, bf16, fn, ops, scalar, u32
from step_lang.errors import HardwareTooSmall, RtlError, StreamProtocolError
from step_lang.hwconfig import HardwareConfig

T = 2
HW = HardwareConfig(tile=T)
N = 4
TILE = (3 * T, 2 * T)
"""A logical tile: three row tiles of two tiles each."""


def regular(padding: bool = False, group: int = 2 * T) -> Program:
    """Of each tile the rows that a count says, one after the other, packed into full tiles; the last is padded."""
    with Program("regular") as p:
        x = p.tensor("x", (N * TILE[0], TILE[1]), bf16)
        count = ops.input_stream("count", scalar(u32), (N,))
        tiles = ops.linear_offchip_load(x, TILE, shape=(N,), stride=(1,), name="load_x")
        lines = ops.flat_map(fn.split_rows(), ops.map(fn.set_offset(padding=padding), tiles, count, name="valid"),
                             name="lines")
        groups, _ = ops.reshape(lines, group, pad=0, name="groups")
        packed = ops.accum(fn.concat_rows(), groups, rank=1, name="packed")
        ops.linear_offchip_store(packed, p.tensor("y", (N * TILE[0], TILE[1]), bf16), name="store_y")
    return p


def ragged_groups() -> Program:
    """The valid rows of two tiles at a time, joined to a tile of as many rows, and taken apart again."""
    with Program("ragged_groups") as p:
        x = p.tensor("x", (N * TILE[0], TILE[1]), bf16)
        count = ops.input_stream("count", scalar(u32), (N // 2, 2))
        tiles = ops.linear_offchip_load(x, TILE, shape=(N // 2, 2), stride=(2, 1), name="load_x")
        lines = ops.flat_map(fn.split_rows(), ops.map(fn.set_offset(), tiles, count, name="valid"), name="lines")
        joined = ops.accum(fn.concat_rows(), lines, rank=1, name="joined")
        again = ops.flat_map(fn.split_rows(), joined, name="again")
        ops.linear_offchip_store(again, p.tensor("y", (N * TILE[0], TILE[1]), bf16), name="store_y")
    return p


COUNTS = {
    "some rows": [3, 1, 6, 5],
    "tiles of no row": [3, 0, 0, 4],
    "no row at all": [0, 0, 0, 0],
    "all rows": [6, 6, 6, 6],
    "a row at the end": [0, 0, 0, 1],
    "a row at the beginning": [1, 0, 0, 0],
}
PROGRAMS = {
    "rows": lambda: regular(), "padding": lambda: regular(padding=True), "groups of ragged length": ragged_groups,
}


def _design(name: str, counts) -> Design:
    nested = [counts[:2], counts[2:]] if PROGRAMS[name] is ragged_groups else counts
    return Design(PROGRAMS[name](), HW, {"count": nested})


@pytest.mark.parametrize("name", PROGRAMS)
def test_rows(name):
    """One netlist for all counts; values, traffic and cycles as interpreter and model say."""
    texts = set()
    for seed, (case, counts) in enumerate(COUNTS.items()):
        design = _design(name, counts)
        texts.add(design.verilog.text)
        kinds = {unit.kind for unit in design.graph.units}
        assert {"trim_rows", "unpack_rows", "pack_rows"} <= kinds
        tensors = random_tensors(design.program, seed)
        run = run_rtl(design, tensors, simulator="icarus", native=False)
        found = check(design, run, design.interpret(tensors), design.interpret(tensors, lowered=False))
        assert found.bit_exact, (case, found.differences)
        model = predict(design.graph, design.hw)
        assert (model.cycles, model.offchip_bytes) == (run.cycles, run.offchip_bytes), case
    assert len(texts) == 1


def test_a_count_above_the_rows_is_told_by_all():
    design = _design("rows", [3, 7, 0, 0])
    tensors = random_tensors(design.program, 0)
    with pytest.raises(StreamProtocolError, match=r"map 'valid' .*tile 1: 7 rows vs a tile of 6"):
        design.interpret(tensors, lowered=False)
    with pytest.raises(StreamProtocolError, match=r"trim_rows 'valid' .*tile 1: 7 rows vs a tile of 6"):
        design.interpret(tensors)
    with pytest.raises(RtlError, match=r"unit 'valid' \(valid \(test_row_programs.py:\d+\)\) raised SHAPE by cycle"):
        run_rtl(design, tensors, simulator="icarus", native=False)
    with pytest.raises(RtlError, match=r"unit 'valid' \(.*\) raises SHAPE in cycle"):
        predict(design.graph, design.hw)


def test_rows_too_wide_for_the_hardware():
    hw = HardwareConfig(tile=T, row_columns=2)
    with Program("wide") as p:
        x = p.tensor("x", (T, 8 * T), bf16)
        lines = ops.flat_map(fn.split_rows(), ops.linear_offchip_load(x, (T, 8 * T), name="load_x"), name="lines")
        ops.linear_offchip_store(lines, p.tensor("y", (T, 8 * T), bf16), name="store_y")
    with pytest.raises(HardwareTooSmall, match=r"tiles of a row: 8 vs 2; fix: set rows.columns to at least 8"):
        _ = Design(p, hw).graph
    wide = HardwareConfig(tile=T, row_columns=8)
    design = Design(p, wide)
    assert design.graph.unit("lines_rows").config == {"n": 8}
    assert design.graph.unit("lines_rows").params == {"columns": 8}
