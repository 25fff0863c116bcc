"""last: the last element of a group."""

from __future__ import annotations

from typing import Any

import numpy as np

from step_lang.types import Tile, Type

from .base import Function
from .support import filled, single_tile

__all__ = ["Last"]


class Last(Function):
    """In accum the group's last element, whatever its size; zeros (or ``init``) where there is none. In map and scan
    the element itself."""

    name = "last"
    has_hardware = True
    foldable = True
    resizes = True

    def __init__(self) -> None:
        super().__init__()

    def result_type(self, *types: Type) -> Tile:
        return single_tile(self.name, types)

    def state_type(self, *types: Type, count: Any = None) -> Tile:
        return self.result_type(*types)

    def initial(self, init: Any, *types: Type) -> np.ndarray:
        return filled(self.name, init, 0, self.state_type(*types))

    def apply(self, numerics: Any, *arrays: np.ndarray) -> np.ndarray:
        return arrays[0]

    def contribution(self, numerics: Any, *arrays: np.ndarray) -> np.ndarray:
        return arrays[0]

    def combine(self, numerics: Any, state: np.ndarray, contribution: np.ndarray) -> np.ndarray:
        return contribution

    def flops(self, *types: Type) -> Any:
        return 0
