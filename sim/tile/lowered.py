"""What lowering makes of an operator, as far as time goes: what the operator needs of a tile to begin, and the cycles
that units of lowering's own add before it and behind it (docs/DESIGN.md, section 6; `step_lang.lowering.rules`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from step_lang.lowering.context import may_be_bare
from step_lang.lowering.rules._matmul import b_order
from step_lang.types import Tile

from .cost import A_BEAT, A_COLUMN, A_PAIR, A_ROW, NEEDS_ALL

__all__ = ["Plan", "Way", "by_rows", "is_tiled", "latency_behind", "packed_by_rows", "ways_in"]

# Cycles from a unit's input link to its output link: its latency (`step_lang.timing`) and the link.
_PLAIN, _REGISTER = 1, 2
FORK = REPEAT = RESHAPE = _PLAIN
FLATTEN = FLAT_MAP = LAST = _REGISTER
REFERENCE, STREAMIFY = _PLAIN, _REGISTER
PASSES = REFERENCE + STREAMIFY
"""From the last beat of a buffer to the first that is read."""
REPLAY = REFERENCE + FORK + STREAMIFY
"""The same where the reference is its own pass request."""

_FOLDS_ROWS = ("row_sum", "row_max")
_CONCATS = ("concat_rows", "concat_cols")


@dataclass(frozen=True)
class Plan:
    """What lowering decides about a program.

    orders : by columns or rows, by stream name: in which order those who take the physical tiles of a tile want them
    packed : names of streams that travel by rows whatever is wanted, as rows are packed by rows
    holds : (operator name, input) of the inputs that it buffers lest a fork and a join wait for each other
    """

    orders: Mapping[str, str] = field(default_factory=dict)
    holds: frozenset[tuple[str, int]] = frozenset()
    packed: frozenset[str] = frozenset()

    def order(self, stream: Any) -> str | None:
        """In which order the physical tiles leave who makes them."""
        return "row" if stream.name in self.packed else self.orders.get(stream.name)


@dataclass(frozen=True)
class Way:
    """To an input: what the operator ``needs`` of a tile to begin, and the cycles of ``delay`` from a beat on the
    stream to where the operator takes it."""

    needs: int = A_BEAT
    delay: int = 0


def is_tiled(type_: Any) -> bool:
    """Has it two dimensions of physical tiles?"""
    return isinstance(type_, Tile) and (type_.rows, type_.cols) != (1, 1)


def ways_in(op: Any, plan: Plan) -> list[Way]:
    """The ways to the first two inputs; an operator that only routes has one for all."""
    if op.kind in ("reassemble", "eager_merge"):
        held = any(_is_kept(op, k, plan) for k in range(len(op.inputs)))
        return [Way(NEEDS_ALL, REPLAY) if held else Way()]
    ways = [_way(op, k, plan) for k in range(min(2, len(op.inputs)))]
    return [Way(NEEDS_ALL, way.delay + REPLAY) if _is_kept(op, k, plan) else way for k, way in enumerate(ways)]


def _is_kept(op: Any, k: int, plan: Plan) -> bool:
    """Is each tile of the input kept until it is whole, lest units wait for each other or to be read in its order?"""
    return (op.name, k) in plan.holds or _wanted(op, k, plan) not in (None, plan.order(op.inputs[k]))


def _wanted(op: Any, k: int, plan: Plan) -> str | None:
    """The order that an input is brought to; None: any, or it is read in the order that is wanted anyway."""
    if not is_tiled(op.inputs[k].type) or not isinstance(op.inputs[k].type.rows, int):
        return None
    if op.kind == "flat_map":
        return "row" if op.fn.name == "split_rows" else None
    if not op.uses_compute:
        return plan.orders[op.inputs[k].name] if op.inputs[k].name in plan.packed and _routes(op) else None
    name = op.fn.name
    if name == "matmul":
        return b_order(op) if k == 1 else None
    if name in _FOLDS_ROWS:
        return "col" if op.kind == "accum" else None
    if name == "set_offset":
        return "row"
    if name in _CONCATS:
        return "row" if name == "concat_rows" else "col"
    whole = is_tiled(op.output.type) and _sizes(op.inputs[k]) == _sizes(op.output)
    return plan.orders[op.output.name] if whole else None


def _routes(op: Any) -> bool:
    """Does it hand physical tiles on as they come? Stores, and readers of a tile as an address, take any order."""
    return op.kind not in ("linear_offchip_store", "random_offchip_store", "linear_offchip_load", "feedback")


def _sizes(stream: Any) -> tuple[Any, Any]:
    return stream.type.rows, stream.type.cols


def _way(op: Any, k: int, plan: Plan) -> Way:
    type_ = op.inputs[k].type
    if op.kind in ("random_offchip_load", "random_offchip_store"):
        return Way(delay=FLAT_MAP) if k == 0 and is_tiled(op.tile) else Way()
    if not is_tiled(type_):
        return Way(delay=_broadcast(op, k, plan).delay) if op.kind == "map" else Way()
    if op.kind == "linear_offchip_load":
        return Way(NEEDS_ALL, LAST)     # of a tile, one reference
    if op.kind == "streamify":
        return Way(NEEDS_ALL, LAST) if k == 1 else Way()
    if op.kind == "expand":
        if k == 1:
            return Way(NEEDS_ALL, LAST)
        return Way(NEEDS_ALL, REFERENCE + (FLATTEN if op.rank else 0))
    if op.kind == "repeat":
        return Way(NEEDS_ALL, REFERENCE + (FORK if isinstance(type_.rows, int) else 0))
    if not op.uses_compute or op.kind == "flat_map":
        return Way()
    if op.fn.name == "matmul":
        return _operand(op, k, plan)
    if op.fn.name in _CONCATS:
        return Way() if op.kind == "map" else _joined(op)  # lowering has none in map
    return _broadcast(op, k, plan)


def _operand(op: Any, k: int, plan: Plan) -> Way:
    """An operand of a product. Where its rows are dynamic, a map reads each row of A and all of B, an accum all of A
    and each row of B; else each tile of B meets a column of A."""
    if not isinstance(op.output.type.rows, int):
        if op.kind == "map":
            return Way(A_ROW, REPLAY) if k == 0 else Way(NEEDS_ALL, PASSES)
        return Way(NEEDS_ALL, REPLAY + FORK + STREAMIFY) if k == 0 else Way(A_ROW, PASSES)
    if k == 1:
        return Way(delay=REPEAT)
    if plan.order(op.inputs[0]) == "row" or may_be_bare(op.inputs[0]):
        return Way(NEEDS_ALL, REPLAY)
    return Way(NEEDS_ALL if op.kind == "map" else A_COLUMN, PASSES)


def _joined(op: Any) -> Way:
    """Whole physical tiles pass; rows come to where they are packed as lines."""
    type_, merged = op.inputs[0].type, FLATTEN if op.rank > 1 else 0
    if getattr(type_, op.fn.along) != 1:
        return Way()
    return Way(delay=FLATTEN + merged + (0 if op.fn.along == "rows" else REPLAY))


def _broadcast(op: Any, k: int, plan: Plan) -> Way:
    """An operand of an elementwise function, brought to the grid of the result."""
    type_, out = op.inputs[k].type, op.output.type
    if not is_tiled(out) or not isinstance(type_, Tile) or _sizes(op.inputs[k]) == _sizes(op.output) or (
            op.fn.name in (*_FOLDS_ROWS, "set_offset")):
        return Way()
    if not is_tiled(type_):
        return Way(delay=2 * REPEAT + (0 if isinstance(out.rows, int) else _PLAIN))
    if not isinstance(out.rows, int):
        return Way(delay=_PLAIN) if type_.cols == 1 else Way(NEEDS_ALL, FLATTEN + PASSES)
    if (type_.cols == 1) == (plan.orders[op.output.name] == "row"):
        # Beats of a line whose stops have vanished wait for the next one.
        held = plan.order(op.inputs[k]) == ("row" if type_.cols == 1 else "col")
        return Way(A_PAIR if held else A_BEAT, FLATTEN + REPEAT)
    return Way(NEEDS_ALL, FLATTEN + REPLAY)


def latency_behind(op: Any) -> int:
    """Cycles from where an operator has made a beat to where it leaves, but for those of its function."""
    if op.kind in ("flatten", "promote", "streamify"):
        return _REGISTER - _PLAIN
    if op.kind == "flat_map":
        if op.fn.name != "split_rows":
            return FLAT_MAP - _PLAIN
        return _REGISTER - _PLAIN + (RESHAPE if is_tiled(op.output.type) else FLATTEN)
    if op.kind in ("repeat", "expand"):
        return STREAMIFY - _PLAIN if is_tiled(op.inputs[0].type) else 0
    if not op.uses_compute:
        return 0
    if op.fn.name in _FOLDS_ROWS and is_tiled(op.inputs[0].type):
        return REPEAT if is_tiled(op.output.type) else FLATTEN
    if op.fn.name in (*_CONCATS, "last", "selector_index"):
        return _REGISTER - _PLAIN
    return 0


def by_rows(op: Any, plan: Plan) -> bool:
    """Are beats of a map that folds over a grid finished by rows?"""
    if op.kind != "map" or op.fn.name not in (*_FOLDS_ROWS, "matmul"):
        return False
    if not isinstance(op.output.type.rows, int):
        return True
    return op.fn.name != "matmul" and plan.order(op.inputs[0]) == "row"


def packed_by_rows(program: Any) -> frozenset[str]:
    """Names of the streams of static tiles that are packed out of rows."""
    return frozenset(op.output.name for op in program.operators if op.kind == "accum" and op.fn.name == "concat_rows"
                     and op.inputs[0].type.rows == 1 and isinstance(op.output.type.rows, int))
