"""Mixture of experts with SwiGLU experts, the paper's figures 9 to 13: static and dynamic tiling, and regions of the
hardware that several experts share in turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from examples.data import random_tensor, selector_bits
from examples.routing import MIXTRAL_B64, choose_experts, load_experts, spread_counts
from step_lang import Program, Selector, Stream, Tensor, bf16, fn, ops, u32
from step_lang.errors import BadParameter

__all__ = ["SWEEPS", "build", "expert_weights", "inputs", "reference", "streams"]

SWEEPS = {
    "tiling": [*({"tiling": "static", "tile_rows": rows} for rows in (8, 16, 32)), {"tiling": "dynamic"}],
    "regions": [{"tiling": "dynamic", "regions": regions} for regions in (8, 4, 2, 1)],
}
"""Parameter sets by name for ``step-hw validate --sweep``: how rows are tiled, and how many regions serve 8 experts."""


@dataclass(frozen=True)
class _Sizes:
    """What all parts of the layer need: rows of a packed tile (None: as many as there are), columns, F in tiles."""

    tile_rows: int | None
    hidden: int
    tile_f: int
    steps: int


def build(batch: int = 64, experts: int = 8, top_k: int = 2, hidden: int = 64, intermediate: int = 128,
          tile_f: int = 64, tiling: str = "dynamic", tile_rows: int = 16, regions: int = 0, idle: int = 0,
          trace: str = "") -> Program:
    """``y[batch, hidden]``, for each token the sum over its ``top_k`` experts of weight x SwiGLU expert.

    Parameters
    ----------
    tiling : ``"static"``: an expert packs its tokens into tiles of ``tile_rows`` rows, the last one padded.
        ``"dynamic"``: into one tile of as many rows as it has tokens.
    tile_f : the gate and up weights ``[hidden, tile_f]`` and the down weights ``[tile_f, hidden]`` stream past each
        packed tile.
    regions : how many groups of operators serve the experts; fewer than experts, each serves ``experts / regions`` of
        them, whichever has a tile ready. 0: one for each expert.
    idle, trace : who serves whom (see `streams`); the program is the same for all.
    """
    regions = regions or experts
    if tiling not in ("static", "dynamic"):
        raise BadParameter(f"tiling: {tiling!r} vs 'static' or 'dynamic'")
    if not 1 <= regions <= experts or experts % regions:
        raise BadParameter(f"regions: {regions} vs a divisor of the {experts} experts")
    if tile_f < 1 or intermediate % tile_f:
        raise BadParameter(f"tile_f: {tile_f} vs a divisor of intermediate {intermediate}")
    sizes = _Sizes(tile_rows if tiling == "static" else None, hidden, tile_f, intermediate // tile_f)
    shared = experts // regions
    with Program("moe") as p:
        x = p.tensor("x", (batch, hidden), bf16)
        scores = p.tensor("scores", (batch * top_k, 1), bf16)
        # A region's weights lie one tile wide, expert after expert, so that a tile's number is its address.
        weights = [[p.tensor(f"{name}{r}", (shared * sizes.steps * rows, cols), bf16) for name, rows, cols in (
            ("gate", hidden, tile_f), ("up", hidden, tile_f), ("down", tile_f, hidden))] for r in range(regions)]
        y = p.tensor("y", (batch, hidden), bf16)

        route = ops.input_stream("route", Selector(experts), (batch,))
        choice = ops.input_stream("choice", Selector(experts), (batch, top_k))
        tokens = ops.linear_offchip_load(x, (1, hidden), shape=(batch,), stride=(1,), name="load_x")
        score = ops.linear_offchip_load(scores, (1, 1), shape=(batch, top_k), stride=(top_k, 1), name="load_scores")
        rows = ops.partition(tokens, route, rank=0, name="to_experts")
        shares = [share.assume(mine.shape) for share, mine in zip(
            ops.partition(score, choice, rank=0, name="scores_to_experts"), rows)]

        packed = [_pack(e, mine, sizes.tile_rows) for e, mine in enumerate(rows)]
        served: list[Stream] = []
        for r in range(regions):
            tiles = [tile for tile, _ in packed[r * shared:(r + 1) * shared]]
            served += _region(r, tiles, weights[r], sizes)
        results = []
        for e, (out, (_, padding)) in enumerate(zip(served, packed)):
            if padding is not None:
                out = ops.map(fn.set_offset(padding=True), out, padding, name=f"trim{e}")
            out = ops.flat_map(fn.split_rows(rows=1), out, name=f"unpack{e}").assume(rows[e].shape)
            results.append(ops.map(fn.mul(), out, shares[e], name=f"weigh{e}"))
        together = ops.reassemble(results, route, rank=0, name="from_experts").assume((batch, top_k))
        ops.linear_offchip_store(ops.accum(fn.add(), together, rank=1, name="combine"), y, name="store_y")
    return p


def _pack(e: int, rows: Stream, tile_rows: int | None) -> tuple[Stream, Stream | None]:
    """An expert's rows ``[D]`` as tiles ``[M]``, and for static tiles how many rows of each are padding."""
    if tile_rows is None:
        return ops.accum(fn.concat_rows(), ops.promote(rows, name=f"all{e}"), rank=1, name=f"pack{e}"), None
    chunks, flags = ops.reshape(rows, chunk=tile_rows, pad=0, name=f"chunk{e}")
    padding = ops.accum(fn.add(), ops.map(fn.cast(u32), flags, name=f"flag{e}"), rank=1, name=f"padding{e}")
    return ops.accum(fn.concat_rows(), chunks, rank=1, name=f"pack{e}"), padding


def _region(r: int, tiles: list[Stream], weights: list[Tensor], sizes: _Sizes) -> list[Stream]:
    """Each expert's tiles ``[M]`` through one SwiGLU, whichever comes first, and back to its expert."""
    if len(tiles) == 1:  # its own region: it always reads the same weights
        x = tiles[0]
        loaded = [ops.linear_offchip_load(w, _weight_tile(w, sizes), ref=x, shape=(sizes.steps,), stride=(1,),
                                          name=f"load_{w.name}") for w in weights]
        return [_swiglu(r, x, loaded, sizes)]
    x, source = ops.eager_merge(tiles, name=f"merge{r}")
    expert = ops.map(fn.selector_index(), source, name=f"expert{r}")
    addresses = ops.flat_map(fn.affine_addresses(shape=(1, sizes.steps), scale=sizes.steps), expert,
                             name=f"addresses{r}")
    loaded = [ops.random_offchip_load(addresses, w, _weight_tile(w, sizes), name=f"load_{w.name}") for w in weights]
    back = ops.partition(_swiglu(r, x, loaded, sizes), source, rank=0, name=f"back{r}")
    return [out.assume(tile.shape) for out, tile in zip(back, tiles)]


def _weight_tile(weight: Tensor, sizes: _Sizes) -> tuple[int, int]:
    """Gate and up ``[hidden, tile_f]``, down ``[tile_f, hidden]``."""
    return (sizes.hidden, sizes.tile_f) if weight.name[0] != "d" else (sizes.tile_f, sizes.hidden)


def _swiglu(r: int, x: Stream, weights: list[Stream], sizes: _Sizes) -> Stream:
    """Tiles ``[M]`` of rows, weights ``[M, steps]`` -> ``(silu(x gate) * (x up)) down``, tiles ``[M]``."""
    x = ops.repeat(x, sizes.steps, name=f"again{r}")
    gate, up = (ops.map(fn.cast(bf16), ops.map(fn.matmul(), x, w, name=f"{name}_matmul{r}"), name=f"{name}_cast{r}")
                for name, w in zip(("gate", "up"), weights))
    product = ops.map(fn.mul(), ops.map(fn.silu(), gate, name=f"silu{r}"), up, name=f"gate_up_mul{r}")
    out = ops.accum(fn.matmul(), product, weights[2], rank=1, name=f"down_matmul{r}")
    return ops.map(fn.cast(bf16), out, name=f"down_cast{r}")


def inputs(program: Program, seed: int = 0) -> dict[str, np.ndarray]:
    """Random contents of ``x``, the experts' weights, and scores that sum to 1 for each token: the same layer for all
    tilings and numbers of regions."""
    batch, top_k = program.operator("choice").output.shape
    powers = np.exp(np.random.default_rng(seed).standard_normal((batch, top_k)))
    tensors = {"x": random_tensor("x", program.tensors["x"].shape, bf16, seed),
               "scores": (powers / powers.sum(axis=1, keepdims=True)).reshape(-1, 1).astype(bf16.numpy)}
    sizes = _layer(program)
    for name in ("gate", "up", "down"):
        shape = (sizes.hidden, sizes.intermediate) if name != "down" else (sizes.intermediate, sizes.hidden)
        tiles = []
        for e in range(sizes.experts):
            weight = random_tensor(f"{name}{e}", shape, bf16, seed, shape[0] ** -0.5)
            tiles += np.split(weight, sizes.steps, axis=0 if name == "down" else 1)
        for r, part in enumerate(np.split(np.concatenate(tiles), sizes.regions)):
            tensors[f"{name}{r}"] = np.ascontiguousarray(part)
    return tensors


def streams(program: Program, seed: int = 0, trace: str = "", idle: int = 0) -> dict[str, Any]:
    """The experts of each token: of ``trace``, a .npz file with key ``data`` or a directory with one, or made at random
    so that each expert has as many tokens as in the paper's Mixtral trace where the sizes are that trace's, else
    unevenly many, none for ``idle`` experts."""
    batch, top_k = program.operator("choice").output.shape
    experts = selector_bits(program, "route")
    if trace:
        chosen = load_experts(trace, batch, top_k, experts)
    elif (batch, top_k, experts, idle) == (64, 2, len(MIXTRAL_B64), 0):
        chosen = choose_experts(MIXTRAL_B64, batch, top_k, seed)
    else:
        chosen = choose_experts(spread_counts(batch, top_k, experts, idle, seed), batch, top_k, seed)
    return {"route": [set(row) for row in chosen.tolist()],
            "choice": [[{expert} for expert in row] for row in chosen.tolist()]}


@dataclass(frozen=True)
class _Layer:
    """The sizes that a program was built with."""

    experts: int
    regions: int
    hidden: int
    intermediate: int
    steps: int


def _layer(program: Program) -> _Layer:
    experts = selector_bits(program, "route")
    regions = sum(name.startswith("down") for name in program.tensors)
    intermediate = program.tensors["down0"].shape[0] * regions // experts
    steps = intermediate // program.tensors["gate0"].shape[1]
    return _Layer(experts, regions, program.tensors["x"].shape[1], intermediate, steps)


def expert_weights(program: Program, tensors: dict[str, np.ndarray], expert: int) -> list[np.ndarray]:
    """Gate, up ``[hidden, F]`` and down ``[F, hidden]`` of an expert, from the tensors of its region."""
    sizes = _layer(program)
    region, place = divmod(expert, sizes.experts // sizes.regions)
    found = []
    for name in ("gate", "up", "down"):
        tiles = np.split(tensors[f"{name}{region}"], sizes.experts // sizes.regions)[place]
        found.append(tiles if name == "down" else np.concatenate(np.split(tiles, sizes.steps), axis=1))
    return found


def reference(program: Program, tensors: dict[str, np.ndarray], streams: dict[str, Any]) -> np.ndarray:
    """``y`` in float64."""
    x, scores = tensors["x"].astype(np.float64), tensors["scores"].astype(np.float64)
    y = np.zeros(program.tensors["y"].shape)
    for t, row in enumerate(streams["choice"]):
        for k, chosen in enumerate(row):
            (expert,) = chosen
            gate, up, down = (w.astype(np.float64) for w in expert_weights(program, tensors, expert))
            h = x[t] @ gate
            y[t] += scores[t * len(row) + k, 0] * ((h / (1 + np.exp(-h)) * (x[t] @ up)) @ down)
    return y
