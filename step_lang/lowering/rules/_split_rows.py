"""split_rows in flat_map: rows of physical tiles one by one, or the same tiles in smaller grids."""

from __future__ import annotations

from step_lang import ops
from step_lang.errors import UnknownFunction
from step_lang.types import Tile

from ..context import Lowering
from ..layout import Tiled
from ..orders import Preferences

__all__ = ["lower_flat_map", "preferences"]


def preferences(op) -> Preferences:
    """Rows are made from tiles that follow one another along the row."""
    return Preferences([], [(op.inputs[0], "row"), (op.output, "row")])


def lower_flat_map(ctx: Lowering, op) -> None:
    stream = op.inputs[0]
    rows = op.fn.params["rows"]
    layout = ctx.layout(op.output, "row")
    placed = ctx.get(stream, "row")
    if rows == stream.type.rows == 1:
        # Each row is its own only piece.
        ctx.define(op.output, placed.stream, placed.layout)
        return
    if isinstance(placed.layout, Tiled) and rows % ctx.tile == 0 and stream.type.rows % rows == 0:
        assert isinstance(layout, Tiled)
        # [.., D0, R/T, C/T] -> [.., D0, R/rows, rows/T, C/T] -> the pieces of all elements along one dimension.
        grids, _ = ops.reshape(placed.stream, chunk=layout.rows, dim=1, name=ctx.name(f"{op.name}_grids"))
        ctx.define(op.output, ops.flatten(grids, 2, 3, name=ctx.own(op)), layout)
        return
    if rows != 1 or not placed.layout.inner:
        raise UnknownFunction(
            f"split_rows(rows={rows}) of {stream.type} vs pieces of 1 row, or of a multiple of T = {ctx.tile} rows "
            "that divides a static tile", operator=op, fix="split into single rows and reshape them")
    unpacked = ops.unpack_rows(placed.stream, name=ctx.name(f"{op.name}_rows"))
    piece = op.output.type
    assert isinstance(piece, Tile)
    if isinstance(layout, Tiled):
        ctx.define(op.output, ctx.as_vector(unpacked, layout, ctx.own(op)), layout)
    else:   # rows of one element
        ctx.define(op.output, ops.flatten(unpacked, 0, 1, name=ctx.own(op)), layout)
