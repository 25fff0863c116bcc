"""On-chip memory and allocated compute of a run, in several accountings.

``"spec"`` is SPEC section 5. ``"figures"`` is what the paper's plots use, simpler: an off-chip operator holds one tile,
not two; repeat, expand, accum and scan hold one output tile with 4 bytes an element; a matmul in map holds nothing;
bufferize is as in SPEC. Tiles of dynamic rows count with the most rows that the run had. A program with such tiles gets
its memory as it runs: an operator that no element reached holds nothing. One with static tiles only has its memory from
the start, used or not; tiles that lose their padding in passing do not count as dynamic. ``"figures-used"`` is the
same, but no operator that no element reached holds anything, as in the first arXiv version of the paper.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from step_lang.errors import BadParameter
from step_lang.operator import Operator
from step_lang.program import Program
from step_lang.types import Tile

from .network import EMPTY, TRACED
from .prediction import TilePrediction

__all__ = ["ACCOUNTINGS", "allocated_compute", "onchip_by_operator", "onchip_bytes"]

ACCOUNTINGS = ("spec", "figures", "figures-used")
_STATE_BYTES = 4
_HOLDS_RESULT = ("repeat", "expand", "accum", "scan")
_LOADS = ("linear_offchip_load", "random_offchip_load", "input_stream")
_STORES = ("linear_offchip_store", "random_offchip_store")


def onchip_bytes(prediction: TilePrediction, accounting: str = "spec") -> int:
    """Bytes of on-chip memory that the program needs, for the sizes of this run. Raises `BadParameter`."""
    return sum(onchip_by_operator(prediction, accounting).values())


def onchip_by_operator(prediction: TilePrediction, accounting: str = "spec") -> dict[str, int]:
    """The same by operator. Raises `BadParameter` for an accounting that is none of `ACCOUNTINGS`."""
    if accounting not in ACCOUNTINGS:
        raise BadParameter(f"accounting: {accounting!r} vs one of {', '.join(ACCOUNTINGS)}")
    program = prediction.run.graph.program
    if accounting == "spec":
        return {row.name: int(row.onchip_bytes) for row in prediction.costs.rows}
    sizes = _stream_sizes(prediction)
    by_name = {row.name: row for row in prediction.costs.rows}
    on_demand = accounting == "figures-used" or _has_dynamic_tiles(program)
    found = {}
    for op in program.operators:
        reached = any(sizes[stream.name][0] for stream in (op.inputs or op.outputs))
        if on_demand and not reached:
            found[op.name] = 0
        elif op.kind in _LOADS:
            found[op.name] = _tile_bytes(op.output.type, sizes[op.output.name][1])
        elif op.kind in _STORES:
            stored = op.inputs[-1]
            found[op.name] = _tile_bytes(stored.type, sizes[stored.name][1])
        elif op.kind in _HOLDS_RESULT:
            found[op.name] = _tile_bytes(op.output.type, sizes[op.output.name][1], _STATE_BYTES)
        elif op.kind == "bufferize":
            found[op.name] = int(by_name[op.name].onchip_bytes)
        else:
            found[op.name] = 0
    return found


def allocated_compute(prediction: TilePrediction) -> int:
    """FLOPs/cycle of the operators that compute on tiles, as the paper's plots count them: not of those that make
    addresses and counts, nor of casts, which the paper's programs do not have."""
    graph = prediction.run.graph
    return int(sum(graph.cost[u, 0] for u, op in enumerate(graph.operators) if op is not None and _computes_tiles(op)))


def _computes_tiles(op: Operator) -> bool:
    if not op.uses_compute or op.kind == "flat_map" or op.flops() == 0 or op.fn.name == "cast":  # type: ignore[attr-defined]
        return False
    return any(isinstance(stream.type, Tile) and (stream.type.rows, stream.type.cols) != (1, 1)
               for stream in (*op.inputs, op.output))


def _has_dynamic_tiles(program: Program) -> bool:
    """Are tiles of dynamic rows put together?"""
    return any(isinstance(op.output.type, Tile) and not op.output.type.is_static
               for op in program.operators if op.kind in ("accum", "scan"))


def _stream_sizes(prediction: TilePrediction) -> dict[str, tuple[int, int]]:
    """Of each stream its elements, and the most elements of a tile that the run had (0 where it had no tile)."""
    net, program = prediction.run.net, prediction.run.graph.program
    trace = net.trace[:net.misc[TRACED]]
    trace = trace[(trace[:, 1] & EMPTY) == 0]
    n = len(program.streams)
    counts = np.bincount(trace[:, 0], minlength=n)
    most = np.zeros(n, dtype=np.int64)
    np.maximum.at(most, trace[:, 0], trace[:, 2] * trace[:, 3])
    return {stream.name: (int(counts[i]), int(most[i])) for i, stream in enumerate(program.streams)}


def _tile_bytes(type_: Any, most: int, element_bytes: int | None = None) -> int:
    """Bytes of the largest tile: the type's where it is static."""
    if not isinstance(type_, Tile):
        return int(type_.nbytes)
    elements = int(type_.rows) * int(type_.cols) if type_.is_static else most
    return elements * (int(type_.dtype.bytes) if element_bytes is None else element_bytes)
