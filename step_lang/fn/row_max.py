"""row_max: the largest element of each row."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy

from step_lang import numerics as num
from step_lang.types import Tile, Type

from .base import Function
from .elementwise import NUMBERS
from .support import check_dtype, filled, lowest, single_tile

__all__ = ["RowMax"]


class RowMax(Function):
    """``[R, C] -> [R, 1]``, same element type (NaN wins, -0 < +0). In accum the maximum goes on over the elements,
    from the smallest value."""

    name = "row_max"
    has_hardware = True
    foldable = True

    def __init__(self) -> None:
        super().__init__()

    def result_type(self, *types: Type) -> Tile:
        tile = single_tile(self.name, types)
        check_dtype(self.name, tile, NUMBERS)
        return Tile(tile.rows, 1, tile.dtype)

    def state_type(self, *types: Type, count: Any = None) -> Tile:
        return self.result_type(*types)

    def initial(self, init: Any, *types: Type) -> np.ndarray:
        state = self.state_type(*types)
        return filled(self.name, init, lowest(state.dtype.name), state)

    def apply(self, numerics: Any, *arrays: np.ndarray) -> np.ndarray:
        # The maximum is associative and commutative (one NaN, ordered zeros), so halving gives the same as a scan.
        (x,) = arrays
        while x.shape[2] > 1:
            half = x.shape[2] // 2
            odd = x[:, :, 2 * half :]
            x = np.concatenate([num.maximum(x[:, :, :half], x[:, :, half : 2 * half]), odd], axis=2)
        return num.canonical(x)

    def contribution(self, numerics: Any, *arrays: np.ndarray) -> np.ndarray:
        return self.apply(numerics, *arrays)

    def combine(self, numerics: Any, state: np.ndarray, contribution: np.ndarray) -> np.ndarray:
        return num.maximum(state, contribution)

    def flops(self, *types: Type) -> Any:
        tile = single_tile(self.name, types)
        return sympy.Mul(tile.rows, tile.cols)
