"""Finds the inputs that need a buffer because a fork and a join would wait for each other.

A logical tile is one element of a link, its physical tiles are many. Where a stream forks, one branch reduces whole
tiles (a row maximum) and both join again, the other branch must hold a whole tile meanwhile, which a link of two beats
cannot. That is so only since lowering, so lowering adds the buffer.

The same where branches meet in a reassemble or eager_merge, which serves one of them whole element by whole element:
a partition that copies an element to several of them must get rid of the others' tiles meanwhile.
"""

from __future__ import annotations

from step_lang.operator import Operator
from step_lang.program import Program

__all__ = ["find_holds"]

_WHOLE_TILE = ("matmul", "row_sum", "row_max")
"""Functions that need a whole logical tile before they give a physical one."""


def find_holds(program: Program) -> set[tuple[str, int]]:
    """(operator name, input index) of every input to be buffered."""
    # For each stream: ancestor stream -> which of "passes tile by tile" (False), "waits for whole tiles" (True) occur.
    ancestors: dict[str, dict[str, frozenset[bool]]] = {}
    # A feedback's stream is read before it is made. What comes round a loop is another tile than what it came from.
    loops = {op.output.name for op in program.operators if op.breaks_cycle}
    ancestors |= {name: {name: frozenset({False})} for name in loops}
    holds: set[tuple[str, int]] = set()
    for op in program.topological():
        inputs = [ancestors.get(stream.name, {}) for stream in op.inputs]
        for i, mine in enumerate(inputs):
            for j, other in enumerate(inputs):
                if i != j and any(_waits(op, i, mine[a], j, other[a]) for a in mine if a in other):
                    holds.add((op.name, i))
        reached: dict[str, frozenset[bool]] = {}
        if op.kind not in ("bufferize", "streamify", "accum", "linear_offchip_load"):
            for found in inputs:
                for name, kinds in found.items():
                    kinds = frozenset({True}) if _needs_whole_tile(op) else kinds
                    reached[name] = reached.get(name, frozenset()) | kinds
        for stream in op.outputs if not op.breaks_cycle else ():
            ancestors[stream.name] = {**reached, stream.name: frozenset({False})}
    return holds


def _needs_whole_tile(op: Operator) -> bool:
    return op.kind == "repeat" or (op.kind in ("map", "accum") and op.fn.name in _WHOLE_TILE)  # type: ignore[attr-defined]


def _waits(op: Operator, mine: int, my_kinds: frozenset[bool], other: int, other_kinds: frozenset[bool]) -> bool:
    """Whether input ``mine`` of ``op`` must hold tiles while ``other``, of the same origin, is still reduced."""
    if op.kind in ("reassemble", "eager_merge"):
        # Chunks of several elements would wait for each other in the logical program as well.
        data = len(op.inputs) - (op.kind == "reassemble")
        return op.rank == 0 and mine < data and other < data and False in my_kinds  # type: ignore[attr-defined]
    if op.kind in ("map", "accum") and op.fn.name == "matmul":  # type: ignore[attr-defined]
        # The operator itself reads whole tiles: A is buffered before B moves (map), or both move in different orders.
        return op.kind == "accum" or mine == 1
    return False in my_kinds and True in other_kinds
