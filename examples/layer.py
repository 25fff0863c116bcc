"""A transformer layer in one graph, the paper's figure 17: queries, keys and values of a batch of tokens, attention
with their caches, mixture of experts. Norms, rotary embedding and residuals are left out.

What one part leaves for the next lies off-chip; the next begins when the acknowledgements of the stores say that it is
there. A whole model is its layers one after the other, a graph each (`layers`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from examples import attention, moe, qkv
from examples.data import check_sizes, random_tensor
from examples.models import model as model_of
from examples.models import sizes as sizes_of
from step_lang import Program, Selector, Stream, Tensor, bf16, fn, ops, scalar, u32
from step_lang.errors import BadParameter

__all__ = ["SMALL", "SWEEPS", "build", "inputs", "layers", "reference", "streams"]

SMALL = {"hidden": 16, "experts": 4, "top_k": 2, "intermediate": 16, "shared_experts": 0, "heads": 4, "kv_heads": 2,
         "head_dim": 8}
"""Sizes where no model and nothing else is given."""

_PAPER: dict[str, Any] = {
    "batch": 64, "capacity": 6464, "kv_tile": 32, "attention_regions": 4, "tile_f": 64, "compute_bw": 4096,
    "attention_bw": 2048, "projection": False}

_WAYS: tuple[dict[str, Any], ...] = (
    *({"schedule": "interleaved", "tiling": "static", "tile_rows": rows} for rows in (8, 16, 32, 64)),
    {"schedule": "dynamic", "tiling": "dynamic"})

SWEEPS: dict[str, list[dict[str, Any]]] = {
    "fig17": [{"model": name, **_PAPER, **way} for name in ("mixtral-8x7b", "qwen3-30b-a3b") for way in _WAYS],
}
"""Parameter sets by name: the paper's figure 17, whole layers with static tiles of several sizes, of which the one that
takes the memory of the dynamic layer is to be compared with it."""

QUERIES, KEYS, VALUES = {0}, {1}, {2}
"""Selectors of ``kind``: which of them a tile is."""


def build(batch: int = 4, hidden: int | None = None, experts: int | None = None, top_k: int | None = None,
          intermediate: int | None = None, shared_experts: int | None = None, heads: int | None = None,
          kv_heads: int | None = None, head_dim: int | None = None, tile_b: int = 0, schedule: str = "dynamic",
          attention_regions: int = 2, kv_tile: int = 8, capacity: int = 32, ahead: int = 2, block: int = 0,
          projection: bool = True, tiling: str = "dynamic", tile_rows: int = 4, tile_f: int = 8, regions: int = 0,
          groups: int = 0, compute_bw: int | None = None, attention_bw: int | None = None, trace: str = "",
          lengths: str = "", factor: int = 1, idle: int = 0, model: str = "") -> Program:
    """``y[batch, hidden]``.

    Parameters
    ----------
    model : whose layer it is (``models.toml``): sizes that are not given are its, else those of `SMALL`.
    tile_b : tokens of a tile where weights of attention stream past. 0: the batch.
    schedule, attention_regions, kv_tile, capacity, ahead, block : of attention (see `attention.build`), where each KV
        head of a token is a request.
    projection : the experts get ``h``, what attention leaves times ``w_o``; else an ``h`` from the host, though not
        before attention is complete: what the paper runs.
    tiling, tile_rows, tile_f, regions, groups : of the experts (see `moe.build`).
    compute_bw, attention_bw : FLOPs/cycle of each operator that computes, and of those of attention; None: the
        hardware's default.
    trace, idle, lengths, factor : who serves whom, and how long the caches are (see `streams`).
    """
    given = {"hidden": hidden, "experts": experts, "top_k": top_k, "intermediate": intermediate,
             "shared_experts": shared_experts, "heads": heads, "kv_heads": kv_heads, "head_dim": head_dim}
    sizes = sizes_of(model, given, SMALL)
    heads, kv_heads, dim = (sizes.pop(key) for key in ("heads", "kv_heads", "head_dim"))
    tile_b = tile_b or batch
    check_sizes(heads=heads, kv_heads=kv_heads)
    if heads % kv_heads:
        raise BadParameter(f"kv_heads: {kv_heads} vs a divisor of the {heads} heads")
    with Program(f"layer_{attention.known_schedule(schedule)}") as p:
        x = p.tensor("x", (batch, sizes["hidden"]), bf16)
        w_qkv = p.tensor("w_qkv", (sizes["hidden"], (heads + 2 * kv_heads) * dim), bf16)
        memory = attention.Memory.of(p, batch * kv_heads, heads // kv_heads, dim, kv_tile, capacity, attention_bw, True)
        begin = ops.input_stream("begin", scalar(u32), (1,))

        made = _generate(x, w_qkv, memory, begin, tile_b, (heads, kv_heads, kv_heads), compute_bw)
        served = attention.serve(memory, batch * kv_heads, attention_regions, schedule, ahead, block,
                                 lambda count, suffix: _copies(made, count, f"made{suffix}"))
        served.close()
        complete = ops.accum(fn.add(), ops.promote(served.done, name="all_done"), rank=1, name="complete")
        attended = ops.expand(begin, complete, rank=0, name="attended")
        h = p.tensor("h", (batch, sizes["hidden"]), bf16)
        if projection:
            w_o = p.tensor("w_o", (heads * dim, sizes["hidden"]), bf16)
            attended = _project(memory.out, w_o, h, attended, tile_b, heads, compute_bw)

        rows = moe.moe(p, partial(_rows, h, attended), batch=batch, tile_f=tile_f, tiling=tiling,
                       tile_rows=tile_rows, regions=regions, groups=groups, compute_bw=compute_bw, **sizes)
        y = p.tensor("y", (batch, sizes["hidden"]), bf16)
        ops.linear_offchip_store(rows, y, name="store_y")
    return p


def _generate(x: Tensor, w: Tensor, memory: attention.Memory, begin: Stream, tile_b: int, columns: Sequence[int],
              compute_bw: int | None) -> Stream:
    """Queries, keys and values of all tokens into ``memory``; one element when they are there."""
    dim = memory.q.shape[1]
    tiles = qkv.generate(x, w, tile_b, dim, compute_bw)
    kind = ops.input_stream("kind", Selector(3), tiles.shape)
    blocks = x.shape[0] // tile_b
    done = begin
    for name, tensor, count, part in zip(("q", "k", "v"), (memory.q, memory.k_new, memory.v_new), columns,
                                         ops.partition(tiles, kind, rank=0, name="to_qkv")):
        part = part.assume((blocks * count,))
        rows = ops.flat_map(fn.split_rows(rows=1), part, name=f"{name}_made")
        done = _store(name, rows, tensor, begin, done, (blocks, count, tile_b), (tile_b * count, 1, count))
    return done


def _store(name: str, rows: Stream, tensor: Tensor, begin: Stream, done: Stream, shape: Sequence[int],
           stride: Sequence[int]) -> Stream:
    """Rows ``[n]`` to the places of an affine view of ``tensor``; ``done`` when all of them are there."""
    places = ops.flat_map(fn.affine_addresses(shape=tuple(shape), stride=tuple(stride)), begin, name=f"{name}_at")
    if len(shape) > 1:
        places = ops.flatten(places, 0, len(shape) - 1, name=f"{name}_in_order")
    written = ops.random_offchip_store(ops.promote(places, name=f"{name}_all_at"),
                                       ops.promote(rows, name=f"{name}_all"), tensor, rank=1, name=f"store_{name}")
    return ops.expand(done, written, rank=0, name=f"{name}_there")


def _copies(element: Stream, count: int, name: str) -> Stream:
    """The one element of a stream as ``[count]``."""
    return ops.flatten(ops.repeat(element, count, name=f"{name}_each"), 0, 1, name=name)


def _project(out: Tensor, w_o: Tensor, h: Tensor, begin: Stream, tile_b: int, heads: int,
             compute_bw: int | None) -> Stream:
    """``h = out w_o``, of each token all heads side by side; one element when ``h`` is there."""
    blocks, dim = h.shape[0] // tile_b, out.shape[1]
    places = ops.flat_map(fn.affine_addresses(shape=(blocks, heads, tile_b), stride=(tile_b * heads, 1, heads)), begin,
                          name="heads_at")
    rows = ops.random_offchip_load(places, out, (1, dim), name="load_heads")
    tiles = ops.accum(fn.concat_rows(), rows, rank=1, compute_bw=compute_bw, name="pack_heads")
    weights = ops.linear_offchip_load(w_o, (dim, h.shape[1]), shape=(blocks, heads), stride=(0, 1), name="load_w_o")
    product = ops.accum(fn.matmul(), tiles, weights, rank=1, compute_bw=compute_bw, name="o_matmul")
    product = ops.map(fn.cast(bf16), product, compute_bw=compute_bw, name="o_cast")
    rows = ops.flat_map(fn.split_rows(rows=1), product, name="h_rows")
    return _store("h", rows, h, begin, begin, (h.shape[0],), (1,))


def _rows(source: Tensor, begin: Stream, name: str) -> Stream:
    """All rows of ``source``, read once there is an element of ``begin``."""
    places = ops.flat_map(fn.affine_addresses(shape=(source.shape[0],)), begin, name=f"{name}_at")
    return ops.random_offchip_load(places, source, (1, source.shape[1]), name=name)


# Data


def _heads(program: Program) -> tuple[int, int, int]:
    """Tokens, KV heads, and query heads."""
    batch = program.tensors["x"].shape[0]
    return batch, program.tensors["k_new"].shape[0] // batch, program.tensors["q"].shape[0] // batch


def inputs(program: Program, seed: int = 0) -> dict[str, np.ndarray]:
    """Random tokens, caches and weights, scaled so that scores and outputs are of order 1."""
    tensors = {**attention.inputs(program, seed), **moe.weights(program, seed)}
    shapes = {name: tensor.shape for name, tensor in program.tensors.items()}
    for name in ("q", "k_new", "v_new", "out", "h"):
        if name in shapes:
            tensors[name] = np.zeros(shapes[name], dtype=bf16.numpy)
    hidden, dim = shapes["x"][1], shapes["q"][1]
    tensors["x"] = random_tensor("x", shapes["x"], bf16, seed)
    if "w_o" not in shapes:
        tensors["h"] = tensors["x"].copy()
    w = random_tensor("w_qkv", shapes["w_qkv"], bf16, seed, hidden ** -0.5).astype(np.float64)
    w[:, :_heads(program)[2] * dim] *= dim ** -0.5
    tensors["w_qkv"] = w.astype(bf16.numpy)
    if "w_o" in shapes:
        tensors["w_o"] = random_tensor("w_o", shapes["w_o"], bf16, seed, shapes["w_o"][0] ** -0.5)
    return tensors


def streams(program: Program, seed: int = 0, trace: str = "", idle: int = 0, lengths: str = "",
            factor: int = 1) -> dict[str, Any]:
    """Experts of ``trace`` or made (see `moe.streams`); tokens in the caches of ``lengths``, a .npy file, divided by
    ``factor``, or random ones (see `attention.streams`), the same for all KV heads of a token."""
    batch, kv_heads, heads = _heads(program)
    capacity = program.tensors["mask"].shape[0]
    known = (attention.load_lengths(lengths, batch, factor) if lengths
             else attention.random_lengths(batch, capacity, seed))
    kinds = [QUERIES] * heads + [KEYS] * kv_heads + [VALUES] * kv_heads
    return {**moe.streams(program, seed, trace, idle),
            **attention.request_streams(program, [n for n in known for _ in range(kv_heads)]),
            "begin": [0], "kind": [kinds] * program.operator("kind").output.shape[0]}


def reference(program: Program, tensors: dict[str, np.ndarray], streams: dict[str, Any],
              lengths: Sequence[int]) -> np.ndarray:
    """``y`` in float64, for tokens with ``lengths[i]`` tokens in their caches."""
    batch, kv_heads, heads = _heads(program)
    dim = program.tensors["q"].shape[1]
    made = qkv.reference(tensors).reshape(batch, heads + 2 * kv_heads, dim)
    parts = np.split(made, [heads, heads + kv_heads], axis=1)
    now = {**tensors, **{name: part.reshape(-1, dim) for name, part in zip(("q", "k_new", "v_new"), parts)}}
    h = tensors["h"].astype(np.float64)
    if "w_o" in tensors:
        out = attention.reference(program, now, [n for n in lengths for _ in range(kv_heads)])
        h = out.reshape(batch, heads * dim) @ tensors["w_o"].astype(np.float64)
    return moe.experts_of(program, tensors, streams, h)


# Whole models


def layers(model: str, seed: int = 0, trace: str = "", lengths: str = "", factor: int = 1,
           **parameters: Any) -> Iterator[tuple[Program, dict[str, Any]]]:
    """The layers of a model one after the other: the graph of each, and its input streams.

    Layers that are alike share one `Program`; a dense one is a single expert. ``trace`` is one file for all layers, or
    a directory whose files, by name, are those of the layers, the last also of those that are left; without one each
    layer's is made, other experts being busy in each. ``parameters`` are those of `build`.
    """
    found = model_of(model)
    dense = {"experts": 1, "top_k": 1, "intermediate": found.dense_intermediate, "shared_experts": 0, "regions": 1}
    kinds: dict[bool, Program] = {}
    for layer in range(found.layers):
        is_dense = layer < found.dense_layers
        if is_dense not in kinds:
            kinds[is_dense] = build(model=model, **{**parameters, **(dense if is_dense else {})})
        program = kinds[is_dense]
        made = streams(program, seed, "" if is_dense else _trace_of(trace, layer), 0, lengths, factor)
        if not trace:
            chosen = moe.chosen_experts(program, made)
            to = np.random.default_rng([seed, layer]).permutation(moe.expert_count(program)).tolist()
            made |= moe.routes(program, [[to[e] for e in row] for row in chosen])
        yield program, made


def _trace_of(trace: str, layer: int) -> str:
    files = sorted(Path(trace).glob("*.npz")) if trace else []
    return str(files[min(layer, len(files) - 1)]) if files else trace
