"""Matrix product ``c = a b``, accumulated over tiles of the inner dimension."""

from __future__ import annotations

import numpy as np

from examples.data import check_sizes, random_tensors
from step_lang import DTYPES, Program, fn, ops
from step_lang.errors import BadParameter

__all__ = ["OPERANDS", "build", "inputs", "reference"]

OPERANDS = ("bf16", "int8")
"""Element types that can be multiplied."""


def build(m: int = 64, k: int = 64, n: int = 64, tile_m: int = 16, tile_k: int = 16, tile_n: int = 16,
          dtype: str = "bf16") -> Program:
    """``c[m, n]``, fp32 for bf16 operands and int32 for int8, a tile ``[tile_m, tile_n]`` at a time."""
    check_sizes(tile_m=tile_m, tile_k=tile_k, tile_n=tile_n)
    if dtype not in OPERANDS:
        raise BadParameter(f"dtype: {dtype!r} vs one of {', '.join(OPERANDS)}")
    element = DTYPES[dtype]
    with Program("matmul") as p:
        a = p.tensor("a", (m, k), element)
        b = p.tensor("b", (k, n), element)
        c = p.tensor("c", (m, n), DTYPES["fp32" if element.is_float else "int32"])

        tiles_m, tiles_k, tiles_n = max(1, m // tile_m), max(1, k // tile_k), max(1, n // tile_n)
        loops = (tiles_m, tiles_n, tiles_k)
        a_tiles = ops.linear_offchip_load(a, (tile_m, tile_k), shape=loops, stride=(tiles_k, 0, 1), name="load_a")
        b_tiles = ops.linear_offchip_load(b, (tile_k, tile_n), shape=loops, stride=(0, 1, tiles_n), name="load_b")
        product = ops.accum(fn.matmul(), a_tiles, b_tiles, rank=1, name="matmul")
        ops.linear_offchip_store(product, c, name="store_c")
    return p


def inputs(program: Program, seed: int = 0) -> dict[str, np.ndarray]:
    """Random contents of ``a`` and ``b``."""
    return random_tensors(program, seed)


def reference(tensors: dict[str, np.ndarray]) -> np.ndarray:
    """``c`` in float64."""
    return tensors["a"].astype(np.float64) @ tensors["b"].astype(np.float64)
