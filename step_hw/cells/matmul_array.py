"""The T x T array of dot product cells: the heart of the compute tile."""

from amaranth.hdl import Cat, ClockDomain, Module, Signal, Value
from amaranth.lib.wiring import In, Out

from .cell import Cell, modules_of, place
from .clock_gate import ClockGate
from .dot import DotCell, DotOperand, operand_layout
from .int8_dot import Int8DotCell

__all__ = ["MatmulArray", "MatmulRow"]


class MatmulArray(Cell):
    """T x T dot products, ``group`` products deep, every enabled cycle: ``out[i, j] = dot(a[i, :], b[:, j])``.

    A pipeline of three registers (operands, aligned products, sums) that advances in the cycles in which ``en`` is
    high; rounding follows the last. ``out`` shows the result of the operands that three enabled cycles earlier were
    at ``a`` and ``b`` (:data:`step_lang.timing.DOT_STAGES`). The pipeline knows nothing about valid data. All of it
    hangs on one gated clock.

    Parameters
    ----------
    tile : int
        Rows of ``a`` and columns of ``b``, T (``cols`` columns where given: 1 makes a row of sums).
    group : int
        Products per cycle and output, G.
    dtype : str
        ``bf16`` (out: fp32) or ``int8`` (out: int32).
    cols : int or None

    Members
    -------
    a : In(T * G elements)
        Row-major: element (i, k) at index ``i * G + k``.
    b : In(G * cols elements)
        Row-major: element (k, j) at index ``k * cols + j``.
    en : In(1)
    out : Out(T * cols * 32)
        Row-major.
    """

    twin = "step_lang.numerics.Numerics.group_dots"

    def __init__(self, tile: int, group: int, dtype: str = "bf16", cols: int | None = None):
        if dtype not in ("bf16", "int8"):
            raise ValueError(f"a matmul array multiplies bf16 or int8, not {dtype}")
        self.tile, self.group, self.dtype, self.cols = tile, group, dtype, cols or tile
        self.arguments = (tile, group, dtype, cols)
        width = self.element_bits = 16 if dtype == "bf16" else 8
        super().__init__({"en": In(1), "a": In(tile * group * width), "b": In(group * self.cols * width),
                          "out": Out(tile * self.cols * 32)}, clocked=True)

    @property
    def module_name(self):
        return f"matmul_array_{self.dtype}_{self.tile}x{self.cols}_g{self.group}"

    @property
    def row(self) -> "MatmulRow":
        return MatmulRow(self.group, self.cols, self.dtype)

    def dependencies(self):
        return modules_of(ClockGate(), self.row, *([DotOperand(self.group)] if self.dtype == "bf16" else []))

    def elaborate(self, platform):
        m = Module()
        gated = ClockDomain("gated", reset_less=True)
        m.domains += gated
        place(m, ClockGate(), "gate", clk=self.clk, en=self.en, gated=gated.clk)

        width, group, cols = self.element_bits, self.group, self.cols
        columns = [Cat(self.b.word_select(k * cols + j, width) for k in range(group)) for j in range(cols)]
        b = Cat(self._hold(m, f"b{j}", column) for j, column in enumerate(columns))
        for i in range(self.tile):
            a = self._hold(m, f"a{i}", self.a.word_select(i, group * width))
            place(m, self.row, f"row{i}", clk=gated.clk, a=a, b=b, out=self.out.word_select(i, 32 * cols))
        return m

    def _hold(self, m, name, values):
        """The operand register, and behind it what the cells take."""
        held = Signal(len(values), name=f"{name}_values")
        m.d.gated += held.eq(values)
        if self.dtype == "int8":
            return held
        operand = DotOperand(self.group)
        fields = Signal(operand_layout(self.group).size, name=f"{name}_fields")
        place(m, operand, name, values=held, out=fields)
        return fields


class MatmulRow(Cell):
    """A row of the array: one dot product cell for each column, all with the same ``a``.

    Members
    -------
    a : In, b : In
        What the cells take; ``b`` holds all columns, the first lowest.
    out : Out(32 * cols)
    """

    twin = MatmulArray.twin

    def __init__(self, group: int, cols: int, dtype: str):
        self.group, self.cols, self.dtype = group, cols, dtype
        self.arguments = (group, cols, dtype)
        self.cell = DotCell(group) if dtype == "bf16" else Int8DotCell(group)
        width = Value.cast(self.cell.a).shape()
        super().__init__({"a": In(width), "b": In(width.width * cols), "out": Out(32 * cols)}, clocked=True)

    @property
    def module_name(self):
        return f"matmul_row_{self.dtype}_{self.cols}_g{self.group}"

    def dependencies(self):
        return modules_of(self.cell)

    def elaborate(self, platform):
        m = Module()
        self.clock_domain(m)
        for j in range(self.cols):
            place(m, self.cell, f"dot{j}", a=self.a, b=self.b.word_select(j, len(self.a)),
                  out=self.out.word_select(j, 32))
        return m
