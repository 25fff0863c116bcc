"""concat_rows and concat_cols in accum: whole physical tiles only change dimension; rows and columns are packed."""

from __future__ import annotations

import math

from step_lang import ops
from step_lang.dims import format_shape, is_static
from step_lang.errors import BadParameter, ShapeMismatch, TileDoesNotDivide, TypeMismatch
from step_lang.stream import Stream

from ..context import Lowering, may_be_bare
from ..layout import Order, RowTiled, Tiled
from ..orders import Preferences

__all__ = ["lower_accum", "order_of", "preferences"]


def order_of(op) -> Order:
    """The order in which joined tiles follow one another."""
    return "row" if op.fn.along == "rows" else "col"


def preferences(op) -> Preferences:
    stream = op.inputs[0]
    return Preferences([], [(stream, order_of(op)), (op.output, order_of(op))])


def lower_accum(ctx: Lowering, op) -> None:
    stream = op.inputs[0]
    folded = stream.shape[len(stream.shape) - op.rank:]
    count = math.prod(folded) if all(is_static(dim) for dim in folded) else None
    order = order_of(op)
    placed = ctx.get(stream, order)
    if isinstance(placed.layout, RowTiled):
        raise TypeMismatch(f"{op.fn.name} of {stream.type} vs tiles of static size", operator=op,
                           fix="split them into rows first")
    packs = op.fn.along == "rows" and stream.type.rows == 1
    _check_empty(op, packs, count)
    if packs:
        _pack_rows(ctx, op, placed.stream, placed.layout, count)
        return
    if count is None:
        raise ShapeMismatch(f"joined dimensions {list(folded)} vs static ones", operator=op,
                            fix="reshape the stream into chunks of a static size first, or join single rows")
    layout = ctx.layout(op.output, order)
    assert isinstance(layout, Tiled)
    if isinstance(placed.layout, Tiled) and getattr(stream.type, op.fn.along) != 1:
        ctx.define(op.output, ops.flatten(placed.stream, 1, 1 + op.rank, name=ctx.own(op)), layout)
        return
    if count % ctx.tile:
        raise _divides_not(ctx, op, count)
    if not isinstance(placed.layout, Tiled):
        line = placed.stream if op.rank == 1 else ctx.merged(placed.stream, 0, op.rank - 1, f"{op.name}_all")
        chunks, _ = ops.reshape(line, chunk=ctx.tile, name=ctx.name(f"{op.name}_chunks"))
        packed = ops.accum(op.fn, chunks, rank=1, hollow=op.hollow, name=ctx.name(f"{op.name}_packed"))
        ctx.define(op.output, ctx.as_vector(packed, layout, ctx.own(op)), layout)
        return
    # T vectors that lie n tiles apart make a tile: read across the vectors.
    n = placed.layout.count
    line = ctx.line(placed.stream)
    if op.rank > 1:
        line = ctx.merged(line, 1, op.rank, f"{op.name}_all")
    across = ctx.replay(line, (count // ctx.tile, n, ctx.tile), (ctx.tile * n, 1, n), f"{op.name}_across")
    ctx.define(op.output, ops.accum(op.fn, across, rank=1, hollow=op.hollow, name=ctx.own(op)), layout)


def _check_empty(op, packs: bool, count: int | None) -> None:
    """Raise where an empty group would leave another thing than the program says: of a static number of tiles it stays
    a bare stop, of packed rows it becomes one row of zeros."""
    if packs and op.hollow:
        raise BadParameter("hollow: True vs False where rows are packed", operator=op,
                           fix="leave out hollow: a group without rows is a tile of one row of zeros")
    if count is not None and not op.hollow and may_be_bare(op.inputs[0], op.rank):
        outer = op.inputs[0].shape[:len(op.inputs[0].shape) - op.rank]
        fix = "assume or flatten the outer dimensions" if packs else "give accum hollow=True, which leaves it out"
        raise ShapeMismatch(f"{op.fn.name} of {count} tiles within dimensions {format_shape(outer)}, where one may be "
                            "0, vs groups that have elements", operator=op, fix=fix)


def _divides_not(ctx: Lowering, op, count: int) -> TileDoesNotDivide:
    return TileDoesNotDivide(f"{count} {op.fn.along} joined: physical tile T = {ctx.tile} does not divide them",
                             operator=op, fix=f"join a multiple of {ctx.tile}")


def _pack_rows(ctx: Lowering, op, physical: Stream, layout, count: int | None) -> None:
    """Rows ``[.., M, 1, n]`` as ``[.., M/T, n]`` full tiles; the last one has what is left over of a dynamic M."""
    if count is not None and count > ctx.tile and count % ctx.tile:
        raise _divides_not(ctx, op, count)
    if isinstance(layout, Tiled):
        line = ctx.line(physical)
    else:   # rows of one element
        line = ctx.repeated(physical, 1, f"{physical.name}_line")
    if op.rank > 1:
        line = ctx.merged(line, 1, op.rank, f"{op.name}_all")
    packed = ops.pack_rows(line, rows=min(ctx.tile, count or ctx.tile), name=ctx.own(op))
    result = ctx.layout(op.output, "row")
    if isinstance(result, RowTiled):
        packed.assume((*op.output.shape, *result.dims))
    ctx.define(op.output, packed, result)
