"""SwiGLU layer ``y = (silu(x Wg) * (x Wu)) Wd``, the workload of the paper's figure 8."""

from __future__ import annotations

from functools import partial

import numpy as np

from examples.data import check_sizes, random_tensors
from examples.models import sizes as sizes_of
from step_lang import Program, bf16, fn, ops

__all__ = ["SMALL", "SWEEPS", "build", "inputs", "reference"]

SMALL = {"hidden": 256, "intermediate": 512}
"""Sizes where no model and nothing else is given: the paper's."""

SWEEPS = {"fig8": [{"tile_b": tile_b, "tile_f": tile_f}
                   for tile_b in (16, 32, 64) for tile_f in (16, 32, 64, 128, 256)]}
"""Parameter sets by name for ``step-hw validate --sweep``; fig8 is the paper's figure 8."""


def build(batch: int = 64, hidden: int | None = None, intermediate: int | None = None, tile_b: int = 64,
          tile_f: int = 64, compute_bw: int | None = None, model: str = "") -> Program:
    """For each batch tile and each intermediate tile: x ``[tile_b, hidden]`` times the gate and up weight tiles
    ``[hidden, tile_f]``, silu, multiply, times the down weight tile ``[tile_f, hidden]``, accumulated over intermediate
    tiles and stored once per batch tile.

    Sizes that are not given are those of an expert of ``model`` (``models.toml``), without one those of `SMALL`;
    ``compute_bw``: FLOPs/cycle of each operator that computes, None: the hardware's default.
    """
    check_sizes(tile_b=tile_b, tile_f=tile_f)
    sizes = sizes_of(model, {"hidden": hidden, "intermediate": intermediate}, SMALL)
    hidden, intermediate = sizes["hidden"], sizes["intermediate"]
    map_, accum = (partial(op, compute_bw=compute_bw) for op in (ops.map, ops.accum))
    with Program("swiglu") as p:
        x = p.tensor("x", (batch, hidden), bf16)
        w_gate = p.tensor("w_gate", (hidden, intermediate), bf16)
        w_up = p.tensor("w_up", (hidden, intermediate), bf16)
        w_down = p.tensor("w_down", (intermediate, hidden), bf16)
        y = p.tensor("y", (batch, hidden), bf16)

        loops = (max(1, batch // tile_b), max(1, intermediate // tile_f))
        x_tiles = ops.linear_offchip_load(x, (tile_b, hidden), shape=loops, stride=(1, 0), name="load_x")
        weights = [
            ops.linear_offchip_load(w, (hidden, tile_f), shape=loops, stride=(0, 1), name=f"load_{w.name}")
            for w in (w_gate, w_up)]
        down = ops.linear_offchip_load(w_down, (tile_f, hidden), shape=loops, stride=(0, 1), name="load_w_down")

        gate = map_(fn.matmul(), x_tiles, weights[0], name="gate_matmul")
        up = map_(fn.matmul(), x_tiles, weights[1], name="up_matmul")
        gate = map_(fn.cast(dtype="bf16"), gate, name="gate_cast")
        up = map_(fn.cast(dtype="bf16"), up, name="up_cast")
        activated = map_(fn.silu(), gate, name="gate_silu")
        product = map_(fn.mul(), activated, up, name="gate_up_mul")
        out = accum(fn.matmul(), product, down, rank=1, name="down_matmul")
        out = map_(fn.cast(dtype="bf16"), out, name="down_cast")
        ops.linear_offchip_store(out, y, name="store_y")
    return p


def inputs(program: Program, seed: int = 0) -> dict[str, np.ndarray]:
    """Random contents of ``x`` and the weights, scaled so that every layer's values are of order 1."""
    spread = {name: tensor.shape[0] ** -0.5 for name, tensor in program.tensors.items() if name != "x"}
    return random_tensors(program, seed, spread)


def reference(tensors: dict[str, np.ndarray]) -> np.ndarray:
    """``y`` in float64."""
    x, w_gate, w_up, w_down = (tensors[name].astype(np.float64) for name in ("x", "w_gate", "w_up", "w_down"))
    gate = x @ w_gate
    return (gate / (1 + np.exp(-gate)) * (x @ w_up)) @ w_down
