"""Bases of the elementwise functions: one result element from the operands' elements at the same place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sympy

from step_lang import numerics as num
from step_lang.errors import UnknownFunction
from step_lang.types import Tile, Type

from .base import Function
from .support import broadcast_type, check_dtype, filled, single_tile

__all__ = ["Binary", "UnaryBf16"]

NUMBERS = ("bf16", "fp32", "int8", "int32", "u32")


class Binary(Function):
    """An operation on two tiles of one element type; a size of 1 is repeated along the other's.

    Subclasses set ``operation`` and, where accum may fold it, ``neutral`` (by element type).
    """

    arity = 2
    has_hardware = True
    operation: Callable[[np.ndarray, np.ndarray], np.ndarray]
    dtypes: Sequence[str] = NUMBERS

    def __init__(self) -> None:
        super().__init__()

    def neutral(self, dtype: str) -> Any:
        raise UnknownFunction(f"function {self.name!r} vs one that accum and scan can fold")

    def result_type(self, *types: Type) -> Tile:
        a, b = self._tiles(types)
        result = broadcast_type(self.name, a, b)
        check_dtype(self.name, result, self.dtypes)
        return result

    def apply(self, numerics: Any, *arrays: np.ndarray) -> np.ndarray:
        a, b = arrays
        return self.operation(a, b)

    def flops(self, *types: Type) -> Any:
        tile = self.result_type(*types) if len(types) == 2 else single_tile(self.name, types)
        return sympy.Mul(tile.rows, tile.cols)

    def state_type(self, *types: Type, count: Any = None) -> Tile:
        if not self.foldable:
            return super().state_type(*types, count=count)  # type: ignore[return-value]
        tile = single_tile(self.name, types)
        check_dtype(self.name, tile, self.dtypes)
        return tile

    def initial(self, init: Any, *types: Type) -> np.ndarray:
        state = self.state_type(*types)
        return filled(self.name, init, self.neutral(state.dtype.name), state)

    def contribution(self, numerics: Any, *arrays: np.ndarray) -> np.ndarray:
        if not self.foldable:
            return super().contribution(numerics, *arrays)
        return arrays[0]

    def combine(self, numerics: Any, state: np.ndarray, contribution: np.ndarray) -> np.ndarray:
        if not self.foldable:
            return super().combine(numerics, state, contribution)
        return self.operation(state, contribution)


class UnaryBf16(Function):
    """A bf16 function of one element, defined by `step_lang.numerics.unary` under the function's name."""

    has_hardware = True

    def __init__(self) -> None:
        super().__init__()

    def result_type(self, *types: Type) -> Tile:
        (tile,) = self._tiles(types)
        check_dtype(self.name, tile, ("bf16",))
        return tile

    def apply(self, numerics: Any, *arrays: np.ndarray) -> np.ndarray:
        return num.unary(self.name, arrays[0])

    def flops(self, *types: Type) -> Any:
        (tile,) = self._tiles(types)
        return sympy.Mul(tile.rows, tile.cols)
