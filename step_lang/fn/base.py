"""What a function is: the one definition that every layer reads.

A function's values are numpy arrays ``[n, rows, cols]`` (n tiles of one shape, dtype the numpy dtype of the tile's
element type; `bf16` is ``ml_dtypes.bfloat16``). Functions are immutable and compare by class and ``params``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from step_lang.errors import BadParameter, UnknownFunction
from step_lang.types import Tile, Type

__all__ = ["Function"]


class Function(ABC):
    """A function that `map`, `accum` and `scan` apply.

    Subclasses set ``name``, ``arity`` and ``has_hardware``, give ``params`` to ``__init__`` and define `result_type`,
    `flops` and `apply`; those usable in accum and scan also define `state_type`, `initial` and either
    `contribution` and `combine` (state of constant size) or `fold_all` (state that grows with each element).
    """

    name: str
    arity: int = 1
    has_hardware: bool = False
    foldable: bool = False
    """Whether accum accepts the function."""
    grows: bool = False
    """Whether the accumulated state grows with each element: accum uses `fold_all`, and scan does not accept it."""

    resizes: bool = False
    """Whether elements of different sizes may be folded into one state, which then has the size of the last."""

    def __init__(self, **params: Any):
        self.params: Mapping[str, Any] = dict(sorted(params.items()))

    # Types

    @abstractmethod
    def result_type(self, *types: Type) -> Type:
        """Type of ``apply``'s result. Raises `TypeMismatch` with both values."""

    def state_type(self, *types: Type, count: Any = None) -> Type:
        """Type of the accumulated state when elements of ``types`` are folded, ``count`` (int or SymPy; None if
        unknown) of them to a group. Raises `TypeMismatch`."""
        raise UnknownFunction(f"function {self.name!r} vs one that accum and scan can fold")

    def initial(self, init: Any, *types: Type) -> np.ndarray:
        """The state ``[rows, cols]`` before the first element, for the operator's ``init`` parameter (None: the
        function's neutral element)."""
        raise UnknownFunction(f"function {self.name!r} vs one that accum and scan can fold")

    # Values

    @abstractmethod
    def apply(self, numerics: Any, *arrays: np.ndarray) -> np.ndarray:
        """Results ``[n, rows', cols']`` of n applications."""

    def contribution(self, numerics: Any, *arrays: np.ndarray) -> np.ndarray:
        """The part of folding that does not depend on the state, for n elements at once: an array with leading axis
        n, else private to the function."""
        raise UnknownFunction(f"function {self.name!r} vs one that accum and scan can fold")

    def combine(self, numerics: Any, state: np.ndarray, contribution: np.ndarray) -> np.ndarray:
        """States ``[m, rows, cols]`` after folding one more contribution (leading axis m) into each of m states."""
        raise UnknownFunction(f"function {self.name!r} vs one that accum and scan can fold")

    def fold_all(self, numerics: Any, steps: Sequence[np.ndarray]) -> np.ndarray:
        """States ``[m, rows', cols']`` of m groups, ``steps[t]`` being ``[m, rows, cols]``, every group's element t.
        For functions with `grows`; ``steps`` is not empty."""
        raise UnknownFunction(f"function {self.name!r} vs one whose result grows")

    # Costs

    @abstractmethod
    def flops(self, *types: Type) -> Any:
        """FLOPs of one application (int or SymPy); also of one folding step."""

    def onchip(self, *types: Type, accum: bool = False) -> Any:
        """On-chip bytes the function itself needs (SPEC section 5; only matmul needs any)."""
        return 0

    # Identity

    def _tiles(self, types: Sequence[Type]) -> Sequence[Tile]:
        """``types``, checked to be ``arity`` tiles."""
        if len(types) != self.arity:
            raise BadParameter(f"function {self.name!r} takes {self.arity} streams vs {len(types)} given")
        for type_ in types:
            if not isinstance(type_, Tile):
                raise BadParameter(f"function {self.name!r} takes tiles vs {type_}")
        return types  # type: ignore[return-value]

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.params == other.params

    def __hash__(self) -> int:
        return hash((type(self).__name__, tuple(self.params.items())))

    def __str__(self) -> str:
        shown = ", ".join(f"{key}={value}" for key, value in self.params.items() if value not in (None, False))
        return f"{self.name}({shown})" if shown else self.name

    __repr__ = __str__
