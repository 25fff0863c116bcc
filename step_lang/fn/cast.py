"""cast: conversion to another element type."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy

from step_lang import numerics as num
from step_lang.errors import BadParameter
from step_lang.types import DTYPES, DType, Tile, Type

from .base import Function
from .support import check_dtype

__all__ = ["Cast"]

TARGETS = ("bf16", "fp32", "int8", "int32", "u32")


class Cast(Function):
    """x as ``dtype``: round to nearest even; to integers saturating, NaN to 0 (see `step_lang.numerics.cast`)."""

    name = "cast"
    has_hardware = True

    def __init__(self, dtype: str | DType) -> None:
        name = dtype.name if isinstance(dtype, DType) else dtype
        if name not in TARGETS:
            raise BadParameter(f"cast dtype: {dtype!r} vs one of {', '.join(TARGETS)}")
        super().__init__(dtype=name)

    def result_type(self, *types: Type) -> Tile:
        (tile,) = self._tiles(types)
        check_dtype(self.name, tile, (*TARGETS, "bool"))
        return Tile(tile.rows, tile.cols, DTYPES[self.params["dtype"]])

    def apply(self, numerics: Any, *arrays: np.ndarray) -> np.ndarray:
        return num.cast(arrays[0], self.params["dtype"])

    def flops(self, *types: Type) -> Any:
        (tile,) = self._tiles(types)
        return sympy.Mul(tile.rows, tile.cols)
