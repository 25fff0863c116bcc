"""counter: a count as the numbers below it."""

from __future__ import annotations

from typing import Any

import numpy as np

from step_lang.errors import TypeMismatch
from step_lang.tokens import Data
from step_lang.types import Tile, Type, scalar, u32

from .piece import PieceFunction
from .support import numbered

__all__ = ["Counter"]


class Counter(PieceFunction):
    """A u32 n as 0, 1, .., n - 1."""

    name = "counter"

    def __init__(self) -> None:
        super().__init__()

    def piece_type(self, type_: Type) -> Tile:
        if type_ != scalar(u32):
            raise TypeMismatch(f"counter of {type_} vs {scalar(u32)}", fix="convert with map(cast(dtype='u32'), ..)")
        return scalar(u32)

    def piece_shape(self, type_: Type) -> tuple[None]:
        return (None,)

    def pieces(self, numerics: Any, data: Data, type_: Type) -> tuple[np.ndarray, Data]:
        counts = np.asarray(data, dtype=np.int64).reshape(-1)
        numbers = numbered(self.name, counts)
        return counts, numbers.astype(np.uint32).reshape(-1, 1, 1)
