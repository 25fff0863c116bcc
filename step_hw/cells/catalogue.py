"""The cells there are: which one computes which function of which element type."""

from collections.abc import Mapping

from .bf16_div import Bf16Div, Bf16Reciprocal
from .cast import INTEGERS, Cast
from .cell import Cell
from .exp import Bf16Exp
from .float_add import FloatAdd
from .float_mul import FloatMul
from .floats import FORMATS
from .logistic import Bf16Logistic
from .maximum import FloatMax
from .rsqrt import Bf16Rsqrt

__all__ = ["binary_cells", "cast_cells", "element_cells", "unary_cells"]


def binary_cells() -> Mapping[tuple[str, str], Cell]:
    """(function, element type) to the combinational cell with inputs ``a``, ``b`` and output ``out``."""
    cells: dict[tuple[str, str], Cell] = {}
    for fmt in FORMATS:
        cells |= {("add", fmt): FloatAdd(fmt), ("sub", fmt): FloatAdd(fmt, True), ("mul", fmt): FloatMul(fmt),
                  ("max", fmt): FloatMax(fmt)}
    return cells | {("div", "bf16"): Bf16Div()}


def unary_cells() -> Mapping[str, Cell]:
    """bf16 function to the combinational cell with input ``a`` and output ``out``."""
    return {"exp": Bf16Exp(), "rsqrt": Bf16Rsqrt(), "reciprocal": Bf16Reciprocal(),
            **{name: Bf16Logistic(name) for name in ("silu", "sigmoid", "gelu")}}


def cast_cells() -> Mapping[tuple[str, str], Cell]:
    """(source, target) element types to the cell that converts."""
    names = [*FORMATS, *INTEGERS]
    return {(source, target): Cast(source, target) for source in names for target in names
            if target != "bool" and not (source == target and source not in FORMATS)}


def element_cells() -> list[Cell]:
    """All of them."""
    return [*binary_cells().values(), *unary_cells().values(), *cast_cells().values()]
