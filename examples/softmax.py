"""Softmax of each row of a matrix: max, exp, sum, division."""

from __future__ import annotations

import numpy as np

from examples.data import random_tensors
from step_lang import Program, bf16, fn, ops

__all__ = ["build", "inputs", "reference"]


def build(rows: int = 64, cols: int = 64, tile_rows: int = 16) -> Program:
    """``y[rows, cols]``, ``tile_rows`` whole rows at a time."""
    with Program("softmax") as p:
        x = p.tensor("x", (rows, cols), bf16)
        y = p.tensor("y", (rows, cols), bf16)

        tiles = ops.linear_offchip_load(x, (tile_rows, cols), name="load_x")
        largest = ops.map(fn.row_max(), tiles, name="row_max")
        shifted = ops.map(fn.sub(), tiles, largest, name="shift")
        powers = ops.map(fn.exp(), shifted, name="exp")
        total = ops.map(fn.row_sum(), powers, name="row_sum")
        total = ops.map(fn.cast(dtype="bf16"), total, name="sum_cast")
        ops.linear_offchip_store(ops.map(fn.div(), powers, total, name="divide"), y, name="store_y")
    return p


def inputs(program: Program, seed: int = 0) -> dict[str, np.ndarray]:
    """Random contents of ``x``."""
    return random_tensors(program, seed, {"x": 2.0})


def reference(tensors: dict[str, np.ndarray]) -> np.ndarray:
    """``y`` in float64."""
    x = tensors["x"].astype(np.float64)
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)
