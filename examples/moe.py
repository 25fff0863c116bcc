"""Mixture of experts with SwiGLU experts, the paper's figures 9 to 13: static and dynamic tiling, and regions of the
hardware that several experts share in turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from examples.data import random_tensor, selector_bits
from examples.models import sizes as sizes_of
from examples.routing import TRACE_COUNTS, choose_experts, load_experts, spread_counts
from step_lang import Program, Selector, Stream, Tensor, bf16, fn, ops, u32
from step_lang.errors import BadParameter

__all__ = ["SELECTOR_BITS", "SMALL", "SWEEPS", "build", "chosen_experts", "expert_count", "expert_weights",
           "experts_of", "inputs", "moe", "reference", "routes", "streams", "weights"]

SMALL = {"experts": 8, "top_k": 2, "hidden": 64, "intermediate": 128, "shared_experts": 0}
"""Sizes where no model and nothing else is given."""

SELECTOR_BITS = 128
"""Experts that one selector tells apart."""

_PAPER = ("mixtral-8x7b", "qwen3-30b-a3b")


def _tilings(batch: int) -> list[dict[str, Any]]:
    """The paper's figures 9 (64 tokens) and 10 (1024): both models, static tiles of 8 or 16 rows on, and dynamic."""
    rows = [8, 16, 32, 64] if batch == 64 else [16, 32, 64, 128, 256, 512, 1024]
    ways: list[dict[str, Any]] = [*({"tiling": "static", "tile_rows": n} for n in rows), {"tiling": "dynamic"}]
    return [{"model": model, "batch": batch, "compute_bw": 4096, **way} for model in _PAPER for way in ways]


def _shared(**way: Any) -> list[dict[str, Any]]:
    """The paper's figures 12 and 13: Qwen's experts on fewer and fewer regions."""
    return [{"model": "qwen3-30b-a3b", "tile_f": 48, "compute_bw": 1024, "regions": regions, **way}
            for regions in (128, 64, 32, 16, 8, 4)]


SWEEPS: dict[str, list[dict[str, Any]]] = {
    "tiling": [*({"tiling": "static", "tile_rows": rows} for rows in (8, 16, 32)), {"tiling": "dynamic"}],
    "regions": [{"tiling": "dynamic", "regions": regions} for regions in (8, 4, 2, 1)],
    "fig9": _tilings(64), "fig10": _tilings(1024),
    "fig12": _shared(tiling="static", tile_rows=32), "fig13": _shared(tiling="dynamic"),
}
"""Parameter sets by name for ``step-hw validate --sweep``: how rows are tiled, and how many regions serve 8 experts.
Those of the paper's figures are whole layers, too large for RTL."""


@dataclass(frozen=True)
class _Sizes:
    """What all parts of the layer need: rows of a packed tile (None: as many as there are), columns, F in tiles,
    FLOPs/cycle of an operator (None: the hardware's default)."""

    tile_rows: int | None
    hidden: int
    tile_f: int
    steps: int
    compute_bw: int | None = None

    @property
    def map(self) -> Callable[..., Stream]:
        return partial(ops.map, compute_bw=self.compute_bw)

    @property
    def accum(self) -> Callable[..., Stream]:
        return partial(ops.accum, compute_bw=self.compute_bw)


def build(batch: int = 64, experts: int | None = None, top_k: int | None = None, hidden: int | None = None,
          intermediate: int | None = None, tile_f: int = 64, tiling: str = "dynamic", tile_rows: int = 16,
          regions: int = 0, idle: int = 0, trace: str = "", shared_experts: int | None = None,
          compute_bw: int | None = None, groups: int = 0, model: str = "") -> Program:
    """``y[batch, hidden]``, for each token the sum over its ``top_k`` experts of weight x SwiGLU expert.

    Parameters
    ----------
    model : whose layer it is (``models.toml``): experts, top_k, hidden, intermediate and shared_experts that are not
        given are its; without a model they are those of `SMALL`.
    shared_experts : experts that every token has besides, with weight 1; they are one of ``shared_experts`` times F.
        (For RTL with dynamic tiling ``batch``, the rows of its tile, must be a multiple of T.)
    compute_bw : FLOPs/cycle of each operator that computes; None: the hardware's default.
    tiling : ``"static"``: an expert packs its tokens into tiles of ``tile_rows`` rows, the last one padded.
        ``"dynamic"``: into one tile of as many rows as it has tokens.
    tile_f : the gate and up weights ``[hidden, tile_f]`` and the down weights ``[tile_f, hidden]`` stream past each
        packed tile.
    regions : how many groups of operators serve the experts; fewer than experts, each serves ``experts / regions`` of
        them, whichever has a tile ready. 0: one for each expert.
    groups : tokens go to groups of experts, and in a group to its experts, since a selector has but 128 bits. 0: as few
        as that needs, one for 128 experts.
    idle, trace : who serves whom (see `streams`); the program is the same for all.
    """
    with Program("moe") as p:
        sizes = sizes_of(model, {"experts": experts, "top_k": top_k, "hidden": hidden, "intermediate": intermediate,
                                 "shared_experts": shared_experts}, SMALL)
        x = p.tensor("x", (batch, sizes["hidden"]), bf16)
        read = partial(ops.linear_offchip_load, x, (1, sizes["hidden"]), shape=(batch,), stride=(1,))
        rows = moe(p, lambda name: read(name=name), batch=batch, tile_f=tile_f, tiling=tiling, tile_rows=tile_rows,
                   regions=regions, groups=groups, compute_bw=compute_bw, **sizes)
        y = p.tensor("y", (batch, sizes["hidden"]), bf16)
        ops.linear_offchip_store(rows, y, name="store_y")
    return p


def moe(p: Program, tokens: Callable[[str], Stream], *, batch: int, experts: int, top_k: int, hidden: int,
        intermediate: int, shared_experts: int, tile_f: int, tiling: str, tile_rows: int, regions: int,
        groups: int, compute_bw: int | None) -> Stream:
    """The layer inside of a program: rows ``[batch]`` of its result. ``tokens(name)`` makes the rows ``[batch]`` of
    ``hidden`` columns that it is of, with an operator of that name that reads them. Others are parameters of `build`.
    """
    regions, groups = regions or experts, groups or -(-experts // SELECTOR_BITS)
    if tiling not in ("static", "dynamic"):
        raise BadParameter(f"tiling: {tiling!r} vs 'static' or 'dynamic'")
    if groups < 1 or experts % groups or experts // groups > SELECTOR_BITS:
        raise BadParameter(f"groups: {groups} of {experts} experts vs a divisor, at most {SELECTOR_BITS} experts each: "
                           "the bits of a selector")
    if not 1 <= regions <= experts or experts % regions or regions % groups:
        raise BadParameter(f"regions: {regions} vs a divisor of the {experts} experts"
                           + (f", a multiple of the {groups} groups" if groups > 1 else ""))
    if tile_f < 1 or intermediate % tile_f:
        raise BadParameter(f"tile_f: {tile_f} vs a divisor of intermediate {intermediate}")
    if not 1 <= top_k <= experts or shared_experts < 0:
        raise BadParameter(f"top_k, shared_experts: {top_k}, {shared_experts} vs 1..{experts}, at least 0")
    sizes = _Sizes(tile_rows if tiling == "static" else None, hidden, tile_f, intermediate // tile_f, compute_bw)
    scores = p.tensor("scores", (batch * top_k, 1), bf16)
    # A region's weights lie one tile wide, expert after expert, so that a tile's number is its address.
    matrices = [_weights(p, f"{r}", experts // regions, sizes) for r in range(regions)]

    bits = experts if groups == 1 else groups
    route = ops.input_stream("route", Selector(bits), (batch,))
    choice = ops.input_stream("choice", Selector(bits), (batch, top_k))
    arriving = tokens("load_x")
    score = ops.linear_offchip_load(scores, (1, 1), shape=(batch, top_k), stride=(top_k, 1), name="load_scores")
    if groups == 1:
        together = _experts("", 0, arriving, score, route, choice, matrices, experts, sizes).assume((batch, top_k))
    else:
        rows = ops.partition(arriving, route, rank=0, name="to_groups")
        shares = ops.partition(score, choice, rank=0, name="scores_to_groups")
        sums = []
        for g in range(groups):
            own = Selector(experts // groups)
            results = _experts(f"_{g}", g * own.n, rows[g], shares[g],
                               ops.input_stream(f"route_{g}", own, rows[g].shape),
                               ops.input_stream(f"choice_{g}", own, shares[g].shape),
                               matrices[g * regions // groups:(g + 1) * regions // groups], own.n, sizes)
            sums.append(sizes.accum(fn.add(), results, rank=1, name=f"combine_{g}"))
        together = ops.reassemble(sums, route, rank=0, name="from_groups")
    combined = sizes.accum(fn.add(), together, rank=1, name="combine")
    if shared_experts:
        shared = replace(sizes, steps=sizes.steps * shared_experts)
        # Its rows are read once more: those on the way to the other experts may have to wait for its results.
        tile, padding = _pack("_shared", tokens("load_x_shared"), shared)
        (out,) = _region("_shared", [tile], _weights(p, "_shared", 1, shared), shared)
        out = _unpack("_shared", out, padding, shared).assume((batch,))
        combined = sizes.map(fn.add(), combined, out, name="add_shared")
    return combined


def _experts(suffix: str, first: int, tokens: Stream, scores: Stream, route: Stream, choice: Stream,
             matrices: list[list[Tensor]], experts: int, sizes: _Sizes) -> Stream:
    """Rows ``[D]`` through the experts from number ``first`` on that ``route`` says, each result times its share of
    ``scores``: ``[D, experts of a row]``."""
    rows = ops.partition(tokens, route, rank=0, name=f"to_experts{suffix}")
    shares = [mine.assume(row.shape) for mine, row in zip(
        ops.partition(scores, choice, rank=0, name=f"scores_to_experts{suffix}"), rows)]
    packed = [_pack(f"{first + e}", mine, sizes) for e, mine in enumerate(rows)]
    served: list[Stream] = []
    share = experts // len(matrices)
    for r, tensors in enumerate(matrices):
        served += _region(tensors[0].name.removeprefix("gate"), [tile for tile, _ in packed[r * share:(r + 1) * share]],
                          tensors, sizes)
    results = []
    for e, (out, (_, padding)) in enumerate(zip(served, packed)):
        out = _unpack(f"{first + e}", out, padding, sizes).assume(rows[e].shape)
        results.append(sizes.map(fn.mul(), out, shares[e], name=f"weigh{first + e}"))
    return ops.reassemble(results, route, rank=0, name=f"from_experts{suffix}")


def _weights(p: Program, suffix: str, share: int, sizes: _Sizes) -> list[Tensor]:
    """Gate, up and down of ``share`` experts."""
    return [p.tensor(f"{name}{suffix}", (share * sizes.steps * rows, cols), bf16) for name, rows, cols in (
        ("gate", sizes.hidden, sizes.tile_f), ("up", sizes.hidden, sizes.tile_f),
        ("down", sizes.tile_f, sizes.hidden))]


def _pack(e: str, rows: Stream, sizes: _Sizes) -> tuple[Stream, Stream | None]:
    """An expert's rows ``[D]`` as tiles ``[M]``, and for static tiles how many rows of each are padding."""
    if sizes.tile_rows is None:
        return sizes.accum(fn.concat_rows(), ops.promote(rows, name=f"all{e}"), rank=1, name=f"pack{e}"), None
    chunks, flags = ops.reshape(rows, chunk=sizes.tile_rows, pad=0, name=f"chunk{e}")
    padding = sizes.accum(fn.add(), sizes.map(fn.cast(u32), flags, name=f"flag{e}"), rank=1, name=f"padding{e}")
    return sizes.accum(fn.concat_rows(), chunks, rank=1, name=f"pack{e}"), padding


def _unpack(e: str, tiles: Stream, padding: Stream | None, sizes: _Sizes) -> Stream:
    """Tiles ``[M]`` as the rows that are no padding."""
    if padding is not None:
        tiles = sizes.map(fn.set_offset(padding=True), tiles, padding, name=f"trim{e}")
    return ops.flat_map(fn.split_rows(rows=1), tiles, name=f"unpack{e}")


def _region(r: str, tiles: list[Stream], weights: list[Tensor], sizes: _Sizes) -> list[Stream]:
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


def _swiglu(r: str, x: Stream, weights: list[Stream], sizes: _Sizes) -> Stream:
    """Tiles ``[M]`` of rows, weights ``[M, steps]`` -> ``(silu(x gate) * (x up)) down``, tiles ``[M]``."""
    x = ops.repeat(x, sizes.steps, name=f"again{r}")
    gate, up = (sizes.map(fn.cast(bf16), sizes.map(fn.matmul(), x, w, name=f"{name}_matmul{r}"), name=f"{name}_cast{r}")
                for name, w in zip(("gate", "up"), weights))
    product = sizes.map(fn.mul(), sizes.map(fn.silu(), gate, name=f"silu{r}"), up, name=f"gate_up_mul{r}")
    out = sizes.accum(fn.matmul(), product, weights[2], rank=1, name=f"down_matmul{r}")
    return sizes.map(fn.cast(bf16), out, name=f"down_cast{r}")


# Data


def inputs(program: Program, seed: int = 0) -> dict[str, np.ndarray]:
    """Random contents of ``x``, the experts' weights, and scores that sum to 1 for each token: the same layer for all
    tilings and numbers of regions."""
    return {"x": random_tensor("x", program.tensors["x"].shape, bf16, seed), **weights(program, seed)}


def weights(program: Program, seed: int = 0) -> dict[str, np.ndarray]:
    """The same without ``x``."""
    batch, top_k = program.operator("choice").output.shape
    powers = np.exp(np.random.default_rng(seed).standard_normal((batch, top_k)))
    tensors = {"scores": (powers / powers.sum(axis=1, keepdims=True)).reshape(-1, 1).astype(bf16.numpy)}
    sizes = _layer(program)
    for name in ("gate", "up", "down"):
        tiles = [tile for e in range(sizes.experts)
                 for tile in _random_tiles(f"{name}{e}", sizes.intermediate, sizes, seed)]
        for r, part in enumerate(np.split(np.concatenate(tiles), sizes.regions)):
            tensors[f"{name}{r}"] = np.ascontiguousarray(part)
        if sizes.shared:
            tensors[f"{name}_shared"] = np.concatenate(_random_tiles(f"{name}_shared", sizes.shared, sizes, seed))
    return tensors


def _random_tiles(name: str, intermediate: int, sizes: _Layer, seed: int) -> list[np.ndarray]:
    """A random matrix of an expert, as the tiles that stream past."""
    down = name.startswith("down")
    shape = (intermediate, sizes.hidden) if down else (sizes.hidden, intermediate)
    weight = random_tensor(name, shape, bf16, seed, shape[0] ** -0.5)
    return np.split(weight, intermediate // sizes.tile_f, axis=0 if down else 1)


def streams(program: Program, seed: int = 0, trace: str = "", idle: int = 0) -> dict[str, Any]:
    """The experts of each token: of ``trace``, a .npz file with key ``data`` or a directory with one, or made at random
    so that each expert has as many tokens as in the paper's trace of these sizes (`routing.TRACE_COUNTS`), else
    unevenly many, none for ``idle`` experts."""
    batch, top_k = program.operator("choice").output.shape
    experts = _layer(program).experts
    if trace:
        chosen = load_experts(trace, batch, top_k, experts)
    else:
        counts = None if idle else TRACE_COUNTS.get((batch, top_k, experts))
        chosen = choose_experts(counts or spread_counts(batch, top_k, experts, idle, seed), batch, top_k, seed)
    return routes(program, chosen.tolist())


def routes(program: Program, chosen: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Input streams that send token t to the experts ``chosen[t]``."""
    sizes = _layer(program)
    if sizes.groups == 1:
        return {"route": [set(row) for row in chosen], "choice": [[{expert} for expert in row] for row in chosen]}
    size = sizes.experts // sizes.groups
    made: dict[str, Any] = {"route": [{e // size for e in row} for row in chosen],
                            "choice": [[{e // size} for e in row] for row in chosen]}
    for g in range(sizes.groups):
        own = [[e % size for e in row if e // size == g] for row in chosen]
        made |= {f"route_{g}": [set(row) for row in own if row], f"choice_{g}": [{e} for row in own for e in row]}
    return made


def chosen_experts(program: Program, streams: dict[str, Any]) -> list[list[int]]:
    """The experts of each token, from the input streams of `routes`."""
    sizes = _layer(program)
    chosen = [[next(iter(selector)) for selector in row] for row in streams["choice"]]
    if sizes.groups == 1:
        return chosen
    size = sizes.experts // sizes.groups
    inside = [iter(streams[f"choice_{g}"]) for g in range(sizes.groups)]
    return [[g * size + next(iter(next(inside[g]))) for g in row] for row in chosen]


@dataclass(frozen=True)
class _Layer:
    """The sizes that a program was built with; ``shared``: F of the experts that every token has."""

    groups: int
    experts: int
    regions: int
    hidden: int
    intermediate: int
    tile_f: int
    shared: int


def expert_count(program: Program) -> int:
    """Experts of the layer, the shared ones left out."""
    return _layer(program).experts


def _layer(program: Program) -> _Layer:
    groups = sum(op.name.startswith("route_") for op in program.operators if op.kind == "input_stream") or 1
    experts = selector_bits(program, "route") if groups == 1 else groups * selector_bits(program, "route_0")
    regions = sum(name.startswith("down") and name[4:].isdigit() for name in program.tensors)
    down, shared = program.tensors["down0"], program.tensors.get("down_shared")
    return _Layer(groups, experts, regions, down.shape[1], down.shape[0] * regions // experts,
                  program.tensors["gate0"].shape[1], shared.shape[0] if shared else 0)


def expert_weights(program: Program, tensors: dict[str, np.ndarray], expert: int | None) -> list[np.ndarray]:
    """Gate, up ``[hidden, F]`` and down ``[F, hidden]`` of an expert (None: the shared one), from the tensors of its
    region."""
    sizes = _layer(program)
    region, place = ("_shared", 0) if expert is None else divmod(expert, sizes.experts // sizes.regions)
    parts, intermediate = (1, sizes.shared) if expert is None else (sizes.experts // sizes.regions, sizes.intermediate)
    found = []
    for name in ("gate", "up", "down"):
        tiles = np.split(tensors[f"{name}{region}"], parts)[place]
        found.append(tiles if name == "down" else np.concatenate(
            np.split(tiles, intermediate // sizes.tile_f), axis=1))
    return found


def reference(program: Program, tensors: dict[str, np.ndarray], streams: dict[str, Any]) -> np.ndarray:
    """``y`` in float64."""
    return experts_of(program, tensors, streams, tensors["x"].astype(np.float64))


def experts_of(program: Program, tensors: dict[str, np.ndarray], streams: dict[str, Any], x: np.ndarray) -> np.ndarray:
    """What the experts make of the tokens ``x``, in float64."""
    scores = tensors["scores"].astype(np.float64)
    y = np.zeros(x.shape)
    for t, row in enumerate(chosen_experts(program, streams)):
        for k, expert in enumerate(row):
            y[t] += scores[t * len(row) + k, 0] * _swiglu64(x[t], expert_weights(program, tensors, expert))
    if _layer(program).shared:
        y += _swiglu64(x, expert_weights(program, tensors, None))
    return y


def _swiglu64(x: np.ndarray, matrices: list[np.ndarray]) -> np.ndarray:
    gate, up, down = (w.astype(np.float64) for w in matrices)
    h = x @ gate
    return (h / (1 + np.exp(-h)) * (x @ up)) @ down
