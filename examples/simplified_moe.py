"""Simplified mixture of experts, the paper's figures 6 and 7: rows go to experts, are packed into tiles, multiplied,
unpacked and put back in order."""

from __future__ import annotations

from typing import Any

import numpy as np

from examples.data import check_sizes, random_tensors, selector_bits
from step_lang import Program, Selector, Stream, bf16, fn, ops, u32

__all__ = ["build", "inputs", "reference", "streams"]


def build(tokens: int = 10, hidden: int = 64, out: int = 256, experts: int = 2, tile_rows: int = 4,
          tile_out: int = 64) -> Program:
    """``y[tokens, out]``: each row of ``x[tokens, hidden]`` times the matrix ``[hidden, out]`` of its expert.

    An expert packs ``tile_rows`` rows to a tile, the last one padded with zeros, and reads its weights as tiles
    ``[hidden, tile_out]`` once for each packed tile. A row with several experts gets the sum of their results.
    """
    check_sizes(experts=experts, tile_rows=tile_rows, tile_out=tile_out)
    with Program("simplified_moe") as p:
        x = p.tensor("x", (tokens, hidden), bf16)
        weights = [p.tensor(f"w{i}", (hidden, out), bf16) for i in range(experts)]
        y = p.tensor("y", (tokens, out), bf16)

        route = ops.input_stream("route", Selector(experts), (tokens,))
        rows = ops.linear_offchip_load(x, (1, hidden), shape=(tokens,), stride=(1,), name="load_x")
        routed = ops.partition(rows, route, rank=0, name="to_experts")
        results = [_expert(i, part, weights[i], tile_rows, tile_out) for i, part in enumerate(routed)]
        together = ops.reassemble(results, route, rank=0, name="from_experts")
        ops.linear_offchip_store(ops.accum(fn.add(), together, rank=1, name="combine"), y, name="store_y")
    return p


def _expert(i: int, rows: Stream, weight: Any, tile_rows: int, tile_out: int) -> Stream:
    """Rows ``[D]`` of ``hidden`` columns to rows ``[D]`` of ``out``."""
    count = weight.shape[1] // tile_out
    chunks, flags = ops.reshape(rows, chunk=tile_rows, pad=0, name=f"chunk{i}")
    packed = ops.accum(fn.concat_rows(), chunks, rank=1, name=f"pack{i}")
    tiles = ops.linear_offchip_load(weight, (weight.shape[0], tile_out), ref=packed, shape=(count,), stride=(1,),
                                    name=f"load_w{i}")
    product = ops.map(fn.matmul(), ops.repeat(packed, count, name=f"again{i}"), tiles, name=f"matmul{i}")
    product = ops.map(fn.cast(dtype="bf16"), product, name=f"cast{i}")
    wide = ops.accum(fn.concat_cols(), product, rank=1, name=f"widen{i}")
    padding = ops.accum(fn.add(), ops.map(fn.cast(u32), flags, name=f"flag{i}"), rank=1, name=f"padding{i}")
    valid = ops.map(fn.set_offset(padding=True), wide, padding, name=f"trim{i}")
    return ops.flat_map(fn.split_rows(rows=1), valid, name=f"unpack{i}").assume(rows.shape)


def inputs(program: Program, seed: int = 0) -> dict[str, np.ndarray]:
    """Random contents of ``x`` and the experts' matrices."""
    return random_tensors(program, seed, {name: t.shape[0] ** -0.5 for name, t in program.tensors.items()
                                          if name != "x"})


def streams(program: Program, seed: int = 0) -> dict[str, Any]:
    """A random expert for each row."""
    experts, tokens = selector_bits(program, "route"), program.tensors["x"].shape[0]
    return {"route": [{int(i)} for i in np.random.default_rng(seed).integers(0, experts, tokens)]}


def reference(tensors: dict[str, np.ndarray], streams: dict[str, Any]) -> np.ndarray:
    """``y`` in float64."""
    y = np.zeros((len(tensors["x"]), tensors["w0"].shape[1]))
    for row, chosen in enumerate(streams["route"]):
        for e in chosen:
            y[row] += tensors["x"][row].astype(np.float64) @ tensors[f"w{e}"].astype(np.float64)
    return y
