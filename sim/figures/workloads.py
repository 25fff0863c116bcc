"""The paper's workloads as points: mixture-of-experts layers and attention, with the machine of its experiments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from step_lang import Program

from .lab import Point

__all__ = ["MIXTRAL", "QWEN", "MoeModel", "attention_point", "moe_point", "routed_streams"]


@dataclass(frozen=True)
class MoeModel:
    """A mixture-of-experts layer; ``trace`` names the model in file names."""

    name: str
    trace: str
    experts: int
    top_k: int
    hidden: int
    intermediate: int

    def build_parameters(self) -> dict[str, Any]:
        """As `examples.moe.build` names them."""
        return {"experts": self.experts, "top_k": self.top_k, "hidden": self.hidden, "intermediate": self.intermediate}


MIXTRAL = MoeModel("Mixtral-8x7B", "mixtral", 8, 2, 4096, 14336)
QWEN = MoeModel("Qwen3-30B-A3B", "qwen", 128, 8, 2048, 768)


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
                    capacity: int = 6464, compute_bw: int = 2048, depth: int = 2, load_buffers: bool = True) -> Point:
    """Attention of requests with ``lengths`` tokens in their caches: one KV head with 8 queries of 64 columns, cache
    tiles of 32 tokens (`examples.attention` tells the schedules and ``block`` and ``ahead``)."""
    tile = 32
    parameters = {"batch": len(lengths), "regions": min(regions, len(lengths)), "schedule": schedule, "queries": 8,
                  "dim": 64, "kv_tile": tile, "capacity": max(capacity, -(-(max(lengths) + 1) // tile) * tile),
                  "ahead": ahead, "block": block}
    machine = {"compute_bw": compute_bw, "depth": depth, "load_buffers": load_buffers}
    return Point("examples.attention", parameters, machine, "examples.attention:request_streams", list(lengths))
