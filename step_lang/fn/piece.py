"""Base of the functions that `flat_map` applies: each element becomes a stream."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from step_lang.errors import UnknownFunction
from step_lang.tokens import Data
from step_lang.types import Type

from .base import Function

__all__ = ["PieceFunction"]


class PieceFunction(Function):
    """A function of one element (of any type) whose result is a stream of shape ``piece_shape``, of ``piece_type``.

    Subclasses set ``name`` and define `piece_type`, `piece_shape` and `pieces`. They move data and make addresses,
    which counts as no FLOPs.
    """

    @abstractmethod
    def piece_type(self, type_: Type) -> Type:
        """Type of the elements made. Raises `TypeMismatch`."""

    @abstractmethod
    def piece_shape(self, type_: Type) -> tuple[int | None, *tuple[int, ...]]:
        """Dimensions of what one element becomes, outermost first, one more than the rank b: the first is None where
        it depends on the element's value or size."""

    @abstractmethod
    def pieces(self, numerics: Any, data: Data, type_: Type) -> tuple[np.ndarray, Data]:
        """For n elements of ``type_``: the outermost dimension of each one's result (int ``[n]``), and the elements
        made, in order."""

    def flops(self, *types: Type) -> Any:
        return 0

    # Not a function from elements to elements

    def result_type(self, *types: Type) -> Type:
        raise UnknownFunction(f"function {self.name!r}: makes a stream of each element vs one element",
                              fix="apply it with flat_map")

    def apply(self, numerics: Any, *arrays: np.ndarray) -> np.ndarray:
        raise UnknownFunction(f"function {self.name!r}: makes a stream of each element vs one element",
                              fix="apply it with flat_map")
