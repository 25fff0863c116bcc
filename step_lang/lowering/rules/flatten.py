"""flatten: the same dimensions, counted above the grid."""

from __future__ import annotations

from step_lang import ops
from step_lang.dims import format_shape
from step_lang.errors import ShapeMismatch

from ..context import Lowering, may_be_bare
from ..layout import Tiled

KIND = "flatten"


def lower(ctx: Lowering, op) -> None:
    placed = ctx.get(op.inputs[0], ctx.order(op.output))
    layout = placed.layout
    if layout.inner and op.lo == 0 and may_be_bare(op.inputs[0]):
        if not isinstance(layout, Tiled):
            raise ShapeMismatch(f"stream '{op.inputs[0].name}' of shape {format_shape(op.inputs[0].shape)} in tiles of "
                                f"{op.inputs[0].type}: a dimension below the outermost that may be 0 vs static ones",
                                operator=op, fix="assume its inner dimensions where they are never 0")
        # Bare stops of the innermost dimension must vanish, which they do only at level 0: the grid is merged too and
        # split again.
        _, inner = layout.dims
        line = ops.flatten(placed.stream, 0, op.hi + layout.inner, name=ctx.name(f"{op.name}_tiles"))
        grids, _ = ops.reshape(line, chunk=layout.count, name=ctx.name(f"{op.name}_grids"))
        stream, _ = ops.reshape(grids, chunk=inner, name=ctx.own(op))
    else:
        stream = ops.flatten(placed.stream, op.lo + layout.inner, op.hi + layout.inner, name=ctx.own(op))
    ctx.define(op.output, stream, layout)
