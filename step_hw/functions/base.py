"""What the hardware of a function is, and how it is found.

A function's file ``step_hw/functions/<name>.py`` offers one of

``operation(function, operands, result) -> ElementOp``
    one element of the result from one element of each operand (element types ``DType``): the function is served by
    `elementwise.Elementwise`, and, when it is foldable, by `elementwise.ElementFold`;
``datapath(function, in_types, out_type, *, rows_per_cycle, k_per_cycle) -> Datapath`` and, where it can be folded,
``fold(function, in_types, state_type, *, rows_per_cycle, k_per_cycle) -> Fold``
    hardware of its own.

Operands and results are physical tiles as they lie on a link (row-major, element (0, 0) lowest).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from amaranth.hdl import Module, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from step_lang.errors import BadParameter, UnknownFunction
from step_lang.fn.base import Function
from step_lang.types import Selector, Tile, Type

from ..beat import BeatLayout

__all__ = ["Datapath", "ElementOp", "Fold", "checked_rows", "datapath", "fold", "tile_layout", "type_key", "width_of"]


class Datapath(wiring.Component):
    """A pipeline that turns operands into a result and advances on ``en``.

    In an enabled cycle it takes step ``step`` (0 .. interval - 1, in order) of the operands, which stay the same from
    the first step to the last; ``latency`` enabled cycles after the last, ``result`` is the result and keeps its value
    until the next enabled cycle. Steps of the next operands may follow at once. There is no valid bit: whoever
    uses the pipeline carries one beside it (`step_hw.units.front`).

    Members: ``en`` In(1), ``step`` In, ``operand0..`` In, ``result`` Out, and an input for each register in ``cfg``;
    where the function ``refuses`` operands, ``wrong`` Out(1), combinational, for those that it does.
    """

    refuses: int = 0
    """Error code of operands that the function does not take; 0: it takes all."""

    def __init__(self, operands: Sequence[int], result: int, *, latency: int, interval: int = 1,
                 cfg: Mapping[str, int] | None = None):
        self.operand_widths = tuple(operands)
        self.latency = latency
        self.interval = interval
        self.cfg_widths = dict(cfg or {})
        super().__init__({
            "en": In(1),
            "step": In(range(max(interval, 2))),
            **{f"operand{i}": In(width) for i, width in enumerate(operands)},
            **{name: In(width) for name, width in self.cfg_widths.items()},
            "result": Out(result),
            **({"wrong": Out(1)} if self.refuses else {}),
        })

    @property
    def operands(self) -> list[Value]:
        """Operand inputs in order."""
        return [getattr(self, f"operand{i}") for i in range(len(self.operand_widths))]

    def dependencies(self) -> dict[str, str]:
        """Verilog of the cells it instantiates by name: module name to text."""
        return {}


@dataclass(frozen=True)
class Fold:
    """The hardware of folding a function.

    contribution : the part that does not depend on the state, one contribution for each step; its latency may be 0.
    combine : combinational, ``state`` and ``contribution`` to ``result``.
    slices : parts the state has, step i updating part i; 1 when every step updates the whole state.
    """

    contribution: Datapath
    combine: Datapath
    slices: int


@dataclass(frozen=True)
class ElementOp:
    """How one element is computed.

    place : ``place(m, name, en, operands, cfg) -> Value`` adds one cell to ``m``.
    modules : Verilog of the cell, module name to text, empty when `place` writes plain logic.
    stages : registers inside the cell, which advance on ``en``.
    cfg : configuration registers it reads, name to width.
    """

    place: Callable[[Module, str, Value, Sequence[Value], Mapping[str, Value]], Value]
    modules: Callable[[], dict[str, str]] = dict
    stages: int = 0
    cfg: Mapping[str, int] = field(default_factory=dict)


def width_of(type_: Type) -> int:
    """Data bits of a physical tile, or a selector, on a link."""
    if isinstance(type_, Selector):
        return type_.n
    if not isinstance(type_, Tile) or not type_.is_static:
        raise BadParameter(f"compute unit operand: {type_} vs a physical tile of static size",
                           fix="lower the program onto physical tiles first")
    return int(type_.rows) * int(type_.cols) * type_.dtype.bits


def tile_layout(type_: Type) -> BeatLayout:
    """Layout of the link that carries a physical tile, or a selector."""
    return BeatLayout(width_of(type_), int(type_.rows) if isinstance(type_, Tile) else 1)


def type_key(type_: Tile | Selector) -> str:
    """Short text that tells physical tiles and selectors apart in module names: ``bf16_4x4``, ``selector_8``."""
    if isinstance(type_, Selector):
        return f"selector_{type_.n}"
    return f"{type_.dtype}_{type_.rows}x{type_.cols}"


def checked_rows(rows: int, rows_per_cycle: int) -> int:
    """Rows served a cycle, at most ``rows``. Raises `BadParameter` when they do not divide the tile."""
    served = min(rows, rows_per_cycle)
    if served < 1 or rows % served:
        raise BadParameter(f"rows_per_cycle: {rows_per_cycle} vs a divisor of the tile's {rows} rows")
    return served


def _hardware(function: Function, use: str):
    """The module of ``step_hw.functions`` that has ``use`` or ``operation``."""
    name = function.name
    try:
        module = importlib.import_module(f"{__package__}.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"{__package__}.{name}":
            raise
        module = None
    offered = module is not None and (hasattr(module, use) or hasattr(module, "operation"))
    if not offered:
        raise UnknownFunction(f"function {name!r} vs one that hardware can {'fold' if use == 'fold' else 'apply'}",
                              fix="run the program in the interpreter, or express it by functions with hardware")
    return module


def datapath(function: Function, in_types: Sequence[Type], out_type: Type, *, rows_per_cycle: int,
             k_per_cycle: int) -> Datapath:
    """Hardware of ``function`` for a ``map`` unit. Raises `UnknownFunction` where there is none."""
    module = _hardware(function, "datapath")
    if hasattr(module, "datapath"):
        return module.datapath(function, in_types, out_type, rows_per_cycle=rows_per_cycle, k_per_cycle=k_per_cycle)
    from .elementwise import Elementwise

    op = module.operation(function, [t.dtype for t in in_types], out_type.dtype)
    return Elementwise(op, in_types, out_type, rows_per_cycle)


def fold(function: Function, in_types: Sequence[Type], state_type: Type, *, rows_per_cycle: int,
         k_per_cycle: int) -> Fold:
    """Hardware of folding ``function`` in ``accum`` and ``scan``. Raises `UnknownFunction` where there is none."""
    module = _hardware(function, "fold")
    if hasattr(module, "fold"):
        return module.fold(function, in_types, state_type, rows_per_cycle=rows_per_cycle, k_per_cycle=k_per_cycle)
    if not function.foldable:
        raise UnknownFunction(f"function {function.name!r} vs one that accum and scan can fold")
    from .elementwise import element_fold

    operands = [state_type.dtype, *(t.dtype for t in in_types)]
    return element_fold(module.operation(function, operands, state_type.dtype), in_types, state_type, rows_per_cycle)
