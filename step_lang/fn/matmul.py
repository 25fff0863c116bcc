"""matmul: the matrix product, folded over K in groups (see `step_lang.numerics.dot`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy

from step_lang import numerics as num
from step_lang.dims import Dim, dims_equal, is_ragged
from step_lang.errors import BadParameter, TypeMismatch
from step_lang.types import Tile, Type, fp32, int32

from .base import Function
from .support import filled

__all__ = ["Matmul"]

#: Rows of the physical tile that SPEC section 5 charges a matmul's input buffer for.
PHYSICAL_ROWS = 16


class Matmul(Function):
    """``A[M, K] @ B[K, N]`` (``B[N, K]`` with ``transpose_b``): bf16 to fp32, int8 to int32.

    In accum the fold goes on from the state, group after group: a contribution holds the group dots
    ``[n, K/G, M, N]``, and nothing is rounded but the group and the running sum.
    """

    name = "matmul"
    arity = 2
    has_hardware = True
    foldable = True

    def __init__(self, transpose_b: bool = False) -> None:
        if not isinstance(transpose_b, bool):
            raise BadParameter(f"matmul transpose_b: {transpose_b!r} vs True or False")
        super().__init__(transpose_b=transpose_b)

    def _sizes(self, types: tuple[Type, ...]) -> tuple[Dim, Dim, Dim]:
        """M, K, N."""
        a, b = self._tiles(types)
        depth, cols = (b.cols, b.rows) if self.params["transpose_b"] else (b.rows, b.cols)
        if not (dims_equal(a.cols, depth) or is_ragged(a.cols) or is_ragged(depth)):
            side = "cols" if self.params["transpose_b"] else "rows"
            raise TypeMismatch(f"matmul inner dimension: {a.cols} cols of A vs {depth} {side} of B ({a}, {b})",
                               fix="tile both alike, or set transpose_b")
        return a.rows, a.cols, cols

    def result_type(self, *types: Type) -> Tile:
        rows, _, cols = self._sizes(types)
        a, b = self._tiles(types)
        if a.dtype != b.dtype:
            raise TypeMismatch(f"matmul element types: {a.dtype} vs {b.dtype}",
                               fix="convert one with map(cast(dtype=..), ..)")
        if a.dtype.name not in ("bf16", "int8"):
            raise TypeMismatch(f"matmul of element type {a.dtype} vs bf16 or int8",
                               fix="convert it first with map(cast(dtype='bf16'), ..)")
        return Tile(rows, cols, fp32 if a.dtype.name == "bf16" else int32)

    def state_type(self, *types: Type, count: Any = None) -> Tile:
        return self.result_type(*types)

    def initial(self, init: Any, *types: Type) -> np.ndarray:
        return filled(self.name, init, 0, self.state_type(*types))

    def _operands(self, arrays: tuple[np.ndarray, ...]) -> tuple[np.ndarray, np.ndarray]:
        a, b = arrays
        return a, np.swapaxes(b, 1, 2) if self.params["transpose_b"] else b

    def apply(self, numerics: Any, *arrays: np.ndarray) -> np.ndarray:
        return numerics.matmul(*self._operands(arrays))

    def contribution(self, numerics: Any, *arrays: np.ndarray) -> np.ndarray:
        return numerics.group_dots(*self._operands(arrays))

    def combine(self, numerics: Any, state: np.ndarray, contribution: np.ndarray) -> np.ndarray:
        return num.fold(state, contribution)

    def flops(self, *types: Type) -> Any:
        return sympy.Mul(2, *self._sizes(types))

    def onchip(self, *types: Type, accum: bool = False) -> Any:
        a, b = self._tiles(types)
        out = self.result_type(*types).nbytes if accum else 0
        return sympy.Mul(PHYSICAL_ROWS, a.cols, a.dtype.bytes) + b.nbytes + out
