"""Elementwise functions: a row of cells that walks the rows of a tile."""

from collections.abc import Sequence

from amaranth.hdl import Array, Cat, Module, Signal, Value

from step_lang.errors import TypeMismatch
from step_lang.types import Tile

from .base import Datapath, ElementOp, Fold, checked_rows, width_of

__all__ = ["ElementCombine", "Elementwise", "RowSlice", "element_fold"]


def _broadcast(in_types: Sequence[Tile], out_type: Tile) -> None:
    """Every operand's rows and cols are the result's or 1."""
    for type_ in in_types:
        if type_.rows not in (1, out_type.rows) or type_.cols not in (1, out_type.cols):
            raise TypeMismatch(f"elementwise operand: {type_} vs a shape that broadcasts to {out_type}")


def _row_slice(operand: Value, type_: Tile, rows: int, step: Value, slices: int) -> Value:
    """Rows ``step * rows ..`` of a tile; the only row of a tile that is broadcast along its rows."""
    if type_.rows == 1 or slices == 1:
        return operand
    width = rows * int(type_.cols) * type_.dtype.bits
    # A choice among slices, not a shift: Amaranth's check for combinational cycles is quadratic in a shift's width.
    return Array(operand[i * width:(i + 1) * width] for i in range(slices))[step]


def _element(slice_: Value, type_: Tile, row: int, col: int) -> Value:
    """Element of a row slice, with broadcasting."""
    row, col = (0 if type_.rows == 1 else row), (0 if type_.cols == 1 else col)
    bits = type_.dtype.bits
    first = (row * int(type_.cols) + col) * bits
    return slice_[first:first + bits]


def _lanes(m: Module, op: ElementOp, en: Value, slices: Sequence[Value], types: Sequence[Tile], rows: int, cols: int,
           cfg) -> Value:
    """Cells for ``rows`` x ``cols`` elements; row-major results."""
    results = []
    for row in range(rows):
        for col in range(cols):
            operands = [_element(s, t, row, col) for s, t in zip(slices, types, strict=True)]
            results.append(op.place(m, f"lane{row * cols + col}", en, operands, cfg))
    return Cat(results)


class Elementwise(Datapath):
    """``rows_per_cycle`` rows of cells; the result register is filled slice by slice.

    Latency: one result register after the cells' own ``stages``; interval: rows / rows_per_cycle.
    """

    def __init__(self, op: ElementOp, in_types: Sequence[Tile], out_type: Tile, rows_per_cycle: int):
        _broadcast(in_types, out_type)
        self.op = op
        self.in_types = tuple(in_types)
        self.out_type = out_type
        self.rows = checked_rows(int(out_type.rows), rows_per_cycle)
        super().__init__([width_of(t) for t in in_types], width_of(out_type), latency=1 + op.stages,
                         interval=int(out_type.rows) // self.rows, cfg=op.cfg)

    def dependencies(self) -> dict[str, str]:
        return self.op.modules()

    def elaborate(self, platform):
        m = Module()
        slices = [_row_slice(operand, type_, self.rows, self.step, self.interval)
                  for operand, type_ in zip(self.operands, self.in_types, strict=True)]
        cfg = {name: getattr(self, name) for name in self.cfg_widths}
        cols = int(self.out_type.cols)
        fresh = _lanes(m, self.op, self.en, slices, self.in_types, self.rows, cols, cfg)
        step = self.step
        for i in range(self.op.stages):
            delayed = Signal.like(self.step, name=f"step{i + 1}")
            with m.If(self.en):
                m.d.sync += delayed.eq(step)
            step = delayed
        result = Signal(len(self.result), name="assembled", reset_less=True)
        width = self.rows * cols * self.out_type.dtype.bits
        with m.If(self.en):
            if self.interval == 1:
                m.d.sync += result.eq(fresh)
            else:
                m.d.sync += result.word_select(step, width).eq(fresh)
        m.d.comb += self.result.eq(result)
        return m


class RowSlice(Datapath):
    """The contribution of an elementwise fold: the step's rows of the element itself. Latency 0."""

    def __init__(self, type_: Tile, rows: int, interval: int):
        self.type = type_
        self.rows = rows
        sliced = interval > 1 and type_.rows != 1
        result = rows * int(type_.cols) * type_.dtype.bits if sliced else width_of(type_)
        super().__init__([width_of(type_)], result, latency=0, interval=interval)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.result.eq(_row_slice(self.operand0, self.type, self.rows, self.step, self.interval))
        return m


class ElementCombine(Datapath):
    """A slice of the state (``operand0``) and of the contribution (``operand1``) to its next value. Latency 0."""

    def __init__(self, op: ElementOp, state: Tile, contribution: Tile):
        self.op = op
        self.types = (state, contribution)
        super().__init__([width_of(state), width_of(contribution)], width_of(state), latency=0)

    def dependencies(self) -> dict[str, str]:
        return self.op.modules()

    def elaborate(self, platform):
        m = Module()
        state = self.types[0]
        m.d.comb += self.result.eq(_lanes(m, self.op, self.en, self.operands, self.types, int(state.rows),
                                          int(state.cols), {}))
        return m


def element_fold(op: ElementOp, in_types: Sequence[Tile], state: Tile, rows_per_cycle: int) -> Fold:
    """Fold of a two-operand elementwise function: ``op(state, element)``."""
    (element,) = in_types
    _broadcast(in_types, state)
    rows = checked_rows(int(state.rows), rows_per_cycle)
    slices = int(state.rows) // rows
    part = Tile(1 if element.rows == 1 else rows, element.cols, element.dtype)
    return Fold(RowSlice(element, rows, slices), ElementCombine(op, Tile(rows, state.cols, state.dtype), part), slices)
