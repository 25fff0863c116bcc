"""Reductions of each row by a tree of one operation: row_max, and row_sum of integers."""

from collections.abc import Sequence

from amaranth.hdl import Cat, Module, Signal, Value

from step_lang.types import DType, Tile

from .base import Datapath, ElementOp, Fold, checked_rows, width_of
from .elementwise import ElementCombine

__all__ = ["RowTree", "row_fold"]


class RowTree(Datapath):
    """``[R, C] -> [R, 1]``: ``rows_per_cycle`` trees of ``op`` that walk the rows. One register.

    With ``assemble`` the register is the whole result, filled slice by slice (for map); without, it is the slice of
    the step (the contribution of a fold). Elements are sign-extended to ``dtype`` first.
    """

    def __init__(self, op: ElementOp, in_type: Tile, dtype: DType, rows_per_cycle: int, *, assemble: bool):
        self.op = op
        self.type = in_type
        self.dtype = dtype
        self.rows = checked_rows(int(in_type.rows), rows_per_cycle)
        self.assemble = assemble
        result = (int(in_type.rows) if assemble else self.rows) * dtype.bits
        super().__init__([width_of(in_type)], result, latency=1, interval=int(in_type.rows) // self.rows)

    def dependencies(self) -> dict[str, str]:
        return self.op.modules()

    def elaborate(self, platform):
        m = Module()
        cols, bits = int(self.type.cols), self.type.dtype.bits
        rows = self.operand0 if self.interval == 1 else self.operand0.word_select(self.step, self.rows * cols * bits)
        fresh = Cat(self._tree(m, f"row{r}", [rows.word_select(r * cols + c, bits) for c in range(cols)])
                    for r in range(self.rows))
        result = Signal(len(self.result), name="register", reset_less=True)
        with m.If(self.en):
            if self.assemble and self.interval > 1:
                m.d.sync += result.word_select(self.step, len(fresh)).eq(fresh)
            else:
                m.d.sync += result.eq(fresh)
        m.d.comb += self.result.eq(result)
        return m

    def _tree(self, m: Module, name: str, elements: Sequence[Value]) -> Value:
        terms = []
        for i, element in enumerate(elements):
            term = Signal(self.dtype.bits, name=f"{name}_e{i}")
            m.d.comb += term.eq(element.as_signed() if len(element) < self.dtype.bits else element)
            terms.append(term)
        if len(terms) == 1 and self.dtype.is_float:  # the operation makes a NaN canonical
            terms *= 2
        level = 0
        while len(terms) > 1:
            pairs = [self.op.place(m, f"{name}_l{level}_{i}", self.en, pair, {})
                     for i, pair in enumerate(zip(terms[::2], terms[1::2]))]
            terms = pairs + terms[len(terms) & ~1:]
            level += 1
        return terms[0]


def row_fold(op: ElementOp, in_type: Tile, state: Tile, rows_per_cycle: int) -> Fold:
    """Fold of a row reduction: the rows' trees, then ``op(state, contribution)``."""
    path = RowTree(op, in_type, state.dtype, rows_per_cycle, assemble=False)
    part = Tile(path.rows, 1, state.dtype)
    return Fold(path, ElementCombine(op, part, part), path.interval)
