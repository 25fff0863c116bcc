"""Operations of one element that a cell of ``step_hw.cells`` computes."""

from collections.abc import Sequence
from functools import cache

from amaranth.hdl import Signal

from step_lang.errors import TypeMismatch, UnknownFunction
from step_lang.types import DType

from ..cells.catalogue import binary_cells, cast_cells, unary_cells
from ..cells.cell import Cell, modules_of, place
from .base import ElementOp

__all__ = ["cast_op", "float_op", "unary_op"]

_binary, _unary, _cast = cache(binary_cells), cache(unary_cells), cache(cast_cells)


def _op(cell: Cell) -> ElementOp:
    """A combinational cell with inputs ``a``, ``b`` (or ``a`` alone) and output ``out``."""

    def place_cell(m, name, en, operands, cfg):
        out = Signal(len(cell.out), name=f"{name}_out")
        place(m, cell, name, **dict(zip("ab", operands)), out=out)
        return out

    return ElementOp(place_cell, lambda: modules_of(cell))


def _found(cells, key, name: str, dtype: DType) -> ElementOp:
    if key not in cells:
        raise UnknownFunction(f"function {name!r} of {dtype} vs one with hardware",
                              fix="convert the operands with map(cast(dtype=..), ..)")
    return _op(cells[key])


def float_op(name: str, dtype: DType) -> ElementOp:
    """``name`` of two floating-point elements of ``dtype``."""
    return _found(_binary(), (name, dtype.name), name, dtype)


def unary_op(name: str, operands: Sequence[DType], result: DType) -> ElementOp:
    """``name`` of one bf16 element."""
    for dtype in (*operands, result):
        if dtype.name != "bf16":
            raise TypeMismatch(f"{name} of element type {dtype} vs bf16",
                               fix="convert it with map(cast(dtype='bf16'), ..)")
    return _found(_unary(), name, name, result)


def cast_op(source: DType, target: DType) -> ElementOp:
    """Conversion of one element."""
    if source == target and not source.is_float:
        return ElementOp(lambda m, name, en, operands, cfg: operands[0])
    return _found(_cast(), (source.name, target.name), "cast", source)
