"""address_range: a start and a count as that many addresses."""

from __future__ import annotations

from typing import Any

import numpy as np

from step_lang.dims import whole
from step_lang.errors import BadParameter, TypeMismatch
from step_lang.tokens import Data
from step_lang.types import Tile, Tuple, Type, scalar, u32

from .piece import PieceFunction
from .support import as_addresses, numbered

__all__ = ["AddressRange"]

PAIR = Tuple((scalar(u32), scalar(u32)))


class AddressRange(PieceFunction):
    """A tuple (start, count) of u32 as the addresses start, start + stride, .., count of them."""

    name = "address_range"

    def __init__(self, stride: int = 1) -> None:
        step = whole(stride)
        if step is None:
            raise BadParameter(f"address_range stride: {stride!r} vs an int")
        super().__init__(stride=step)

    def piece_type(self, type_: Type) -> Tile:
        if type_ != PAIR:
            raise TypeMismatch(f"address_range of {type_} vs {PAIR}, start and count", fix="zip the two streams")
        return scalar(u32)

    def piece_shape(self, type_: Type) -> tuple[None]:
        return (None,)

    def pieces(self, numerics: Any, data: Data, type_: Type) -> tuple[np.ndarray, Data]:
        start, counts = (np.asarray(part, dtype=np.int64).reshape(-1) for part in data)
        number = numbered(self.name, counts)
        return counts, as_addresses(self.name, np.repeat(start, counts) + number * self.params["stride"])
