"""scale: multiplication by a constant."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import sympy

from step_lang import numerics as num
from step_lang.errors import BadParameter
from step_lang.types import DTYPES, Tile, Type

from .base import Function
from .elementwise import NUMBERS
from .support import as_constant, check_dtype

__all__ = ["Scale"]


class Scale(Function):
    """``x * constant``, the constant first rounded to x's element type."""

    name = "scale"
    has_hardware = True

    def __init__(self, constant: float) -> None:
        if isinstance(constant, np.generic):
            constant = constant.item()
        if isinstance(constant, bool) or not isinstance(constant, (int, float)) or not math.isfinite(constant):
            raise BadParameter(f"scale constant: {constant!r} vs a finite number")
        super().__init__(constant=constant)

    def result_type(self, *types: Type) -> Tile:
        (tile,) = self._tiles(types)
        check_dtype(self.name, tile, NUMBERS)
        as_constant("scale constant", self.params["constant"], tile.dtype)
        return tile

    def constant_array(self, tile: Tile) -> np.ndarray:
        """The constant as a 0-dimensional array of the tile's element type (the hardware's operand)."""
        return as_constant("scale constant", self.params["constant"], tile.dtype)

    def apply(self, numerics: Any, *arrays: np.ndarray) -> np.ndarray:
        (x,) = arrays
        dtype = next(dtype for dtype in DTYPES.values() if dtype.numpy == x.dtype)
        return num.mul(x, np.broadcast_to(as_constant("scale constant", self.params["constant"], dtype), x.shape))

    def flops(self, *types: Type) -> Any:
        (tile,) = self._tiles(types)
        return sympy.Mul(tile.rows, tile.cols)
