"""Queries, keys and values of a batch of tokens: ``x Wqkv``, the weights streaming past tiles of tokens."""

from __future__ import annotations

import numpy as np

from examples.data import random_tensors
from examples.models import sizes as sizes_of
from step_lang import Program, Stream, Tensor, bf16, fn, ops
from step_lang.errors import BadParameter

__all__ = ["SMALL", "build", "generate", "inputs", "reference"]

SMALL = {"hidden": 64, "heads": 8, "kv_heads": 2, "head_dim": 16}
"""Sizes where no model and nothing else is given."""


def build(batch: int = 64, hidden: int | None = None, heads: int | None = None, kv_heads: int | None = None,
          head_dim: int | None = None, tile_b: int = 0, tile_n: int = 0, compute_bw: int | None = None,
          model: str = "") -> Program:
    """``qkv[batch, (heads + 2 kv_heads) * head_dim]``: the queries of all heads, then the keys, then the values.

    Parameters
    ----------
    model : whose layer it is (``models.toml``): sizes that are not given are its, else those of `SMALL`.
    tile_b : tokens of a tile; the weights are read once for each. 0: the batch.
    tile_n : columns of the weights that stream past a tile at a time. 0: those of a head.
    compute_bw : FLOPs/cycle of each operator that computes; None: the hardware's default.
    """
    sizes = sizes_of(model, {"hidden": hidden, "heads": heads, "kv_heads": kv_heads, "head_dim": head_dim}, SMALL)
    width = (sizes["heads"] + 2 * sizes["kv_heads"]) * sizes["head_dim"]
    with Program("qkv") as p:
        x = p.tensor("x", (batch, sizes["hidden"]), bf16)
        w = p.tensor("w_qkv", (sizes["hidden"], width), bf16)
        out = p.tensor("qkv", (batch, width), bf16)
        tiles = generate(x, w, tile_b or batch, tile_n or sizes["head_dim"], compute_bw)
        ops.linear_offchip_store(tiles, out, name="store_qkv")
    return p


def generate(x: Tensor, w: Tensor, tile_b: int, tile_n: int, compute_bw: int | None) -> Stream:
    """``x w`` as tiles ``[tile_b, tile_n]``, ``[tiles of tokens, tiles of columns]``; inside of a program."""
    batch, width = x.shape[0], w.shape[1]
    for name, tile, size, what in (("tile_b", tile_b, batch, "tokens"), ("tile_n", tile_n, width, "columns")):
        if tile < 1 or size % tile:
            raise BadParameter(f"{name}: {tile} vs a divisor of {size}, the {what}")
    loops = (batch // tile_b, width // tile_n)
    tokens = ops.linear_offchip_load(x, (tile_b, x.shape[1]), shape=loops[:1], stride=(1,), name="load_x_qkv")
    weights = ops.linear_offchip_load(w, (w.shape[0], tile_n), shape=loops, stride=(0, 1), name="load_w_qkv")
    product = ops.map(fn.matmul(), ops.repeat(tokens, loops[1], name="x_again"), weights, compute_bw=compute_bw,
                      name="qkv_matmul")
    return ops.map(fn.cast(bf16), product, compute_bw=compute_bw, name="qkv_cast")


def inputs(program: Program, seed: int = 0) -> dict[str, np.ndarray]:
    """Random tokens, and weights so that what they make is of order 1."""
    return random_tensors(program, seed, {"w_qkv": program.tensors["x"].shape[1] ** -0.5})


def reference(tensors: dict[str, np.ndarray]) -> np.ndarray:
    """``qkv`` in float64."""
    return tensors["x"].astype(np.float64) @ tensors["w_qkv"].astype(np.float64)
