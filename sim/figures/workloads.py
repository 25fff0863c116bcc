"""The paper's workloads as points: mixture-of-experts layers and attention, with the machine of its experiments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from step_lang import Program

from .lab import Point

__all__ = ["MIXTRAL", "QWEN", "MoeModel", "attention_point", "layer_point", "layer_streams", "moe_point",
           "routed_streams"]


@dataclass(frozen=True)
class MoeModel:
    """A mixture-of-experts layer, and the heads of its attention; ``trace`` names the model in file names."""

    name: str
    trace: str
    experts: int
    top_k: int
    hidden: int
    intermediate: int
    layers: int = 1
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 8

    @classmethod
    def preset(cls, name: str, key: str, trace: str) -> MoeModel:
        """Of the presets of `examples.models`."""
        from examples.models import model

        found = model(key)
        return cls(name, trace, found.experts, found.top_k, found.hidden, found.intermediate, found.layers, found.heads,
                   found.kv_heads, found.head_dim)

    def build_parameters(self) -> dict[str, Any]:
        """As `examples.moe.build` names them."""
        return {"experts": self.experts, "top_k": self.top_k, "hidden": self.hidden, "intermediate": self.intermediate}


MIXTRAL = MoeModel.preset("Mixtral-8x7B", "mixtral-8x7b", "mixtral")
QWEN = MoeModel.preset("Qwen3-30B-A3B", "qwen3-30b-a3b", "qwen")


def moe_point(model: MoeModel, chosen: Sequence[Sequence[int]], tile_rows: int | None, compute_bw: int = 4096,
              tile_f: int = 64, regions: int = 0, depth: int = 2) -> Point:
    """The layer of ``model`` for tokens with experts ``chosen``. ``tile_rows``: rows of a static tile, None for tiles
    of as many rows as an expert has tokens.

    Links hold ``depth`` tiles. Single rows wait where they are until their tile is full or their token's other experts
    are done: with links of 2 rows that is a deadlock (see figure 10), so links of rows hold the batch.
    """
    batch = len(chosen)
    parameters = model.build_parameters() | {"batch": batch, "tile_f": tile_f, "regions": regions}
    if tile_rows is None:
        parameters["tiling"] = "dynamic"
    else:
        parameters |= {"tiling": "static", "tile_rows": tile_rows}
    machine = {"compute_bw": compute_bw, "row_depth": batch, "depth": depth}
    return Point("examples.moe", parameters, machine, f"{__name__}:routed_streams", [list(row) for row in chosen])


def routed_streams(program: Program, chosen: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Values of the input streams of `examples.moe` where ``chosen[t]`` are the experts of token t."""
    return {"route": [set(row) for row in chosen], "choice": [[{expert} for expert in row] for row in chosen]}


def attention_point(lengths: Sequence[int], schedule: str, *, regions: int = 4, block: int = 0, ahead: int = 1,
                    capacity: int = 6464, compute_bw: int = 2048, depth: int = 1) -> Point:
    """Attention of requests with ``lengths`` tokens in their caches: one KV head with 8 queries of 64 columns, cache
    tiles of 32 tokens (`examples.attention` tells the schedules and ``block`` and ``ahead``). Links hold ``depth``
    tiles, 1 in the paper's artifact."""
    tile = 32
    parameters = {"batch": len(lengths), "regions": min(regions, len(lengths)), "schedule": schedule, "queries": 8,
                  "dim": 64, "kv_tile": tile, "capacity": max(capacity, -(-(max(lengths) + 1) // tile) * tile),
                  "ahead": ahead, "block": block}
    machine = {"compute_bw": compute_bw, "depth": depth}
    return Point("examples.attention", parameters, machine, "examples.attention:request_streams", list(lengths))


def layer_point(model: MoeModel, chosen: Sequence[Sequence[int]], lengths: Sequence[int], *, schedule: str,
                tile_rows: int | None, tile_f: int = 64, regions: int = 0, compute_bw: int = 4096,
                attention_bw: int = 2048, attention_regions: int = 4, capacity: int = 6464, depth: int = 1,
                by_head: bool = True) -> Point:
    """A whole layer of ``model``, `examples.layer`: queries, keys and values, attention, experts. ``by_head``: requests
    of a KV head are served before those of the next one, else those of a token."""
    tile = 32
    parameters = model.build_parameters() | {
        "batch": len(chosen), "heads": model.heads, "kv_heads": model.kv_heads, "head_dim": model.head_dim,
        "schedule": schedule, "attention_regions": attention_regions, "kv_tile": tile, "ahead": 1, "projection": False,
        "capacity": max(capacity, -(-(max(lengths) + 1) // tile) * tile), "tile_f": tile_f, "regions": regions,
        "compute_bw": compute_bw, "attention_bw": attention_bw}
    parameters |= {"tiling": "dynamic"} if tile_rows is None else {"tiling": "static", "tile_rows": tile_rows}
    return Point("examples.layer", parameters, {"compute_bw": compute_bw, "row_depth": len(chosen), "depth": depth},
                 f"{__name__}:layer_streams", {"chosen": [list(row) for row in chosen], "lengths": list(lengths),
                                               "by_head": by_head})


def layer_streams(program: Program, given: dict[str, Any]) -> dict[str, Any]:
    """Values of the input streams of `examples.layer`: experts of tokens, and tokens in the cache of each, the same for
    all its KV heads."""
    from examples import attention, layer

    tokens = len(given["lengths"])
    heads = program.tensors["k_new"].shape[0] // tokens
    requests = attention.request_streams(program, [n for n in given["lengths"] for _ in range(heads)])
    if given["by_head"]:
        # The same requests in another order; what a region does with a cache is the same for each.
        order = [token * heads + head for head in range(heads) for token in range(tokens)]
        requests |= {name: [requests[name][i] for i in order] for name in ("number", "length", "full", "rows")}
    return {**layer.streams(program), **routed_streams(program, given["chosen"]), **requests}
