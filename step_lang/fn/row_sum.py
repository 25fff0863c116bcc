"""row_sum: the sum of each row, by the dot product's fold against ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy

from step_lang import numerics as num
from step_lang.types import Tile, Type, fp32, int32

from .base import Function
from .support import check_dtype, filled, single_tile

__all__ = ["RowSum"]


class RowSum(Function):
    """``[R, C] -> [R, 1]``: bf16 to fp32 (groups of G elements as in `matmul`, against ones), int8 and int32 to a
    wrapping int32. In accum the sum goes on over the elements."""

    name = "row_sum"
    has_hardware = True
    foldable = True

    def __init__(self) -> None:
        super().__init__()

    def result_type(self, *types: Type) -> Tile:
        tile = single_tile(self.name, types)
        check_dtype(self.name, tile, ("bf16", "int8", "int32"))
        return Tile(tile.rows, 1, fp32 if tile.dtype.name == "bf16" else int32)

    def state_type(self, *types: Type, count: Any = None) -> Tile:
        return self.result_type(*types)

    def initial(self, init: Any, *types: Type) -> np.ndarray:
        return filled(self.name, init, 0, self.state_type(*types))

    def apply(self, numerics: Any, *arrays: np.ndarray) -> np.ndarray:
        dots = self.contribution(numerics, *arrays)
        n, _, rows, _ = dots.shape
        return num.fold(np.zeros((n, rows, 1), dtype=dots.dtype), dots)

    def contribution(self, numerics: Any, *arrays: np.ndarray) -> np.ndarray:
        (x,) = arrays
        if x.dtype.kind == "i":
            return x.sum(axis=2, keepdims=True, dtype=np.int64).astype(np.int32)[:, None]
        return numerics.group_dots(x, np.ones((x.shape[0], x.shape[2], 1), dtype=x.dtype))

    def combine(self, numerics: Any, state: np.ndarray, contribution: np.ndarray) -> np.ndarray:
        return num.fold(state, contribution)

    def flops(self, *types: Type) -> Any:
        tile = single_tile(self.name, types)
        return sympy.Mul(tile.rows, tile.cols)
