"""Base of concat_rows and concat_cols: tiles joined along one dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy

from step_lang.dims import dims_equal, is_ragged, ragged
from step_lang.errors import BadParameter, TypeMismatch
from step_lang.types import Tile, Type

from .base import Function
from .support import filled, joined, single_tile

__all__ = ["Concat"]


class Concat(Function):
    """Two tiles joined in map; in accum all the elements of a group, in order.

    Subclasses set ``along``, the dimension that grows. An empty group leaves one tile filled with ``init`` (default 0).
    """

    arity = 2
    foldable = True
    grows = True
    along: str
    across: str

    def __init__(self) -> None:
        super().__init__()

    def _joined(self, tile: Tile, size: Any) -> Tile:
        return Tile(**{self.along: size, self.across: getattr(tile, self.across), "dtype": tile.dtype})

    def result_type(self, *types: Type) -> Tile:
        a, b = self._tiles(types)
        if a.dtype != b.dtype:
            raise TypeMismatch(f"{self.name} element types: {a.dtype} vs {b.dtype}")
        x, y = getattr(a, self.across), getattr(b, self.across)
        if not (dims_equal(x, y) or is_ragged(x) or is_ragged(y)):
            raise TypeMismatch(f"{self.name} {self.across}: {x} vs {y}", fix=f"join tiles of the same {self.across}")
        return self._joined(a, sympy.Add(getattr(a, self.along), getattr(b, self.along)))

    def state_type(self, *types: Type, count: Any = None) -> Tile:
        tile = single_tile(self.name, types)
        if count is None:
            return self._joined(tile, ragged(f"{self.along}_joined"))
        if count == 0:
            raise BadParameter(f"{self.name} of 0 elements vs at least 1")
        return self._joined(tile, sympy.Mul(getattr(tile, self.along), count))

    def initial(self, init: Any, *types: Type) -> np.ndarray:
        return filled(self.name, init, 0, single_tile(self.name, types))

    def apply(self, numerics: Any, *arrays: np.ndarray) -> np.ndarray:
        return joined(self.name, arrays, self.along)

    def fold_all(self, numerics: Any, steps: Sequence[np.ndarray]) -> np.ndarray:
        return joined(self.name, steps, self.along)

    def flops(self, *types: Type) -> Any:
        return 0
