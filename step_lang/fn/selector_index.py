"""selector_index: which bit of a one-hot selector is set."""

from __future__ import annotations

from typing import Any

import numpy as np

from step_lang.errors import BadParameter, StreamProtocolError, TypeMismatch
from step_lang.types import Selector, Tile, Type, scalar, u32

from .base import Function

__all__ = ["SelectorIndex"]


class SelectorIndex(Function):
    """A selector with one bit set as that bit's number, a u32: the address of what it selects.

    Raises `StreamProtocolError` at run time for a selector in which no bit or more than one is set.
    """

    name = "selector_index"
    has_hardware = True

    def __init__(self) -> None:
        super().__init__()

    def result_type(self, *types: Type) -> Tile:
        if len(types) != 1:
            raise BadParameter(f"function {self.name!r} takes 1 stream vs {len(types)} given")
        if not isinstance(types[0], Selector):
            raise TypeMismatch(f"{self.name} of {types[0]} vs a Selector",
                               fix="give it the stream that steers a partition, or that an eager_merge returns")
        return scalar(u32)

    def apply(self, numerics: Any, *arrays: np.ndarray) -> np.ndarray:
        bits = np.asarray(arrays[0], dtype=bool)
        wrong = np.flatnonzero(bits.sum(axis=1) != 1)
        if len(wrong):
            names = ", ".join(map(str, np.flatnonzero(bits[wrong[0]])))
            raise StreamProtocolError(f"{self.name}: selector {{{names}}} of element {int(wrong[0])} vs one set bit",
                                      fix="use selectors that name exactly one stream")
        return bits.argmax(axis=1).astype(np.uint32).reshape(-1, 1, 1)

    def flops(self, *types: Type) -> Any:
        return 0
