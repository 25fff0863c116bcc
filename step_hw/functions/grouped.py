"""Functions folded over groups of products: matmul, and row_sum of bf16 (against ones)."""

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from step_lang.errors import BadParameter
from step_lang.timing import DOT_STAGES
from step_lang.types import Tile

from ..cells.cell import modules_of, place
from ..cells.matmul_array import MatmulArray
from .base import Datapath, Fold, width_of
from .binary import binary_op
from .elementwise import ElementCombine

__all__ = ["GroupDots", "GroupSum", "grouped_datapath", "grouped_fold"]

_ONE_BF16 = 0x3F80


class GroupDots(Datapath):
    """Dot products of one group along K a step: ``[M, K] x [K, N]``, N = 1 and ones where ``b`` is None.

    Parameters
    ----------
    a, b : physical tiles; ``b`` is ``[N, K]`` with ``transpose_b``
    k_per_cycle : products of a group, at most K and a divisor of it
    """

    def __init__(self, a: Tile, b: Tile | None, k_per_cycle: int, transpose_b: bool = False):
        self.a, self.b, self.transpose_b = a, b, transpose_b
        self.depth = int(a.cols)
        self.group = min(self.depth, k_per_cycle)
        if self.group < 1 or self.depth % self.group:
            raise BadParameter(f"k_per_cycle: {k_per_cycle} vs a divisor of the depth {self.depth}")
        self.cols = 1 if b is None else int(b.rows if transpose_b else b.cols)
        self.array = MatmulArray(int(a.rows), self.group, a.dtype.name, self.cols)
        super().__init__([width_of(tile) for tile in (a, b) if tile is not None], int(a.rows) * self.cols * 32,
                         latency=DOT_STAGES, interval=self.depth // self.group)

    def dependencies(self) -> dict[str, str]:
        return modules_of(self.array)

    def elaborate(self, platform):
        m = Module()
        bits, rows = self.a.dtype.bits, int(self.a.rows)
        a = Signal(rows * self.group * bits)
        b = Signal(self.group * self.cols * bits)
        m.d.comb += [a.eq(Cat(self._along_k(self.operand0, i) for i in range(rows))), b.eq(self._b())]
        place(m, self.array, "array", en=self.en, a=a, b=b, out=self.result)
        return m

    def _along_k(self, operand: Value, row: int) -> Value:
        """The group's elements of one row of a tile whose cols are K."""
        bits = self.a.dtype.bits
        whole = operand.word_select(row, self.depth * bits)
        return whole if self.interval == 1 else whole.word_select(self.step, self.group * bits)

    def _b(self) -> Value:
        """The group's rows of B, row-major."""
        bits = self.a.dtype.bits
        if self.b is None:
            return Cat(Const(_ONE_BF16, bits) for _ in range(self.group))
        if self.transpose_b:
            columns = [self._along_k(self.operand1, j) for j in range(self.cols)]
            return Cat(column.word_select(k, bits) for k in range(self.group) for column in columns)
        if self.interval == 1:
            return self.operand1
        return self.operand1.word_select(self.step, self.group * self.cols * bits)


class GroupSum(Datapath):
    """``matmul`` or ``row_sum`` in a map unit: the groups' dot products added up from +0, k ascending.

    One group needs no adder: +0 plus x is x, but for -0, which becomes +0. Several take one more register.
    """

    def __init__(self, dots: GroupDots, out_type: Tile):
        self.dots = dots
        self.is_float = out_type.dtype.is_float
        self.combine = _adders(out_type) if dots.interval > 1 else None
        super().__init__(dots.operand_widths, len(dots.result), latency=dots.latency + (dots.interval > 1),
                         interval=dots.interval)

    def dependencies(self) -> dict[str, str]:
        return self.dots.dependencies() | (self.combine.dependencies() if self.combine else {})

    def elaborate(self, platform):
        m = Module()
        m.submodules.dots = dots = self.dots
        m.d.comb += [dots.en.eq(self.en), dots.step.eq(self.step)]
        m.d.comb += [inner.eq(outer) for inner, outer in zip(dots.operands, self.operands, strict=True)]
        if self.interval == 1:
            words = [dots.result.word_select(i, 32) for i in range(len(dots.result) // 32)]
            if self.is_float:
                words = [Cat(word[:31], word[31] & (word[:31] != 0)) for word in words]
            m.d.comb += self.result.eq(Cat(words))
            return m
        step = self.step
        for i in range(dots.latency):
            delayed = Signal.like(self.step, name=f"step{i + 1}")
            with m.If(self.en):
                m.d.sync += delayed.eq(step)
            step = delayed
        m.submodules.combine = combine = self.combine
        total = Signal(len(self.result), reset_less=True)
        m.d.comb += [
            combine.operand0.eq(Mux(step == 0, 0, total)),
            combine.operand1.eq(dots.result),
            self.result.eq(total),
        ]
        with m.If(self.en):
            m.d.sync += total.eq(combine.result)
        return m


def _adders(state: Tile) -> Datapath:
    return ElementCombine(binary_op("add", [state.dtype], state.dtype), state, state)


def _dots(in_types: Sequence[Tile], k_per_cycle: int, transpose_b: bool) -> GroupDots:
    return GroupDots(in_types[0], in_types[1] if len(in_types) > 1 else None, k_per_cycle, transpose_b)


def grouped_datapath(in_types: Sequence[Tile], out_type: Tile, k_per_cycle: int, transpose_b: bool = False) -> Datapath:
    """The function in a map unit; ``in_types`` are A and B, or A alone for the sum of its rows."""
    return GroupSum(_dots(in_types, k_per_cycle, transpose_b), out_type)


def grouped_fold(in_types: Sequence[Tile], state_type: Tile, k_per_cycle: int, transpose_b: bool = False) -> Fold:
    """The function in accum and scan: every group is folded into the state."""
    return Fold(_dots(in_types, k_per_cycle, transpose_b), _adders(state_type), 1)
