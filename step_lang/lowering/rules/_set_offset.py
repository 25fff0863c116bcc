"""set_offset: rows of physical tiles are trimmed to as many as are valid."""

from __future__ import annotations

from step_lang import ops
from step_lang.dims import is_static
from step_lang.errors import TypeMismatch

from ..context import Lowering
from ..layout import RowTiled
from ..orders import Preferences

__all__ = ["lower_map", "preferences"]


def preferences(op) -> Preferences:
    """What is left of a tile has its rows outermost, and so must the tile."""
    return Preferences([], [(op.inputs[0], "row")])


def lower_map(ctx: Lowering, op) -> None:
    tile, count = op.inputs
    layout = ctx.layout(op.output)
    placed = ctx.get(tile, "row")
    if not isinstance(layout, RowTiled) or not placed.layout.inner:
        raise TypeMismatch(f"set_offset of {tile.type} vs tiles of more than one element", operator=op)
    padding = op.fn.params["padding"]
    if padding and not is_static(tile.type.rows):
        raise TypeMismatch(f"set_offset(padding=True) of {tile.type} vs tiles of a static number of rows", operator=op,
                           fix="give the number of valid rows instead of the padding")
    stream = ops.trim_rows(placed.stream, ctx.get(count).stream, rows=ctx.tile, padding=padding, name=ctx.own(op))
    ctx.define(op.output, stream.assume((*op.output.shape, *layout.dims)), layout)
