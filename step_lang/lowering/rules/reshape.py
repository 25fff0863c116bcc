"""reshape: the same dimension, counted above the grid; whole grids are padded."""

from __future__ import annotations

import numpy as np

from step_lang import ops
from step_lang.dims import is_static
from step_lang.errors import BadParameter, UnknownFunction

from ..context import Lowering
from ..layout import RowTiled
from ..orders import Preferences

KIND = "reshape"


def preferences(op) -> Preferences:
    """The flags are not tiled."""
    return Preferences([[op.inputs[0], op.outputs[0]]])


def lower(ctx: Lowering, op) -> None:
    data, flags = op.outputs
    if op.pad is not None and np.ndim(op.pad):
        raise BadParameter(f"pad: an array of shape {np.shape(op.pad)} vs a number", operator=op,
                           fix="give one number: padding differs from tile to tile otherwise")
    placed = ctx.get(op.inputs[0], ctx.order(data))
    size = op.inputs[0].shape[op.inputs[0].rank - op.dim]
    whole = is_static(size) and size % op.chunk == 0
    if isinstance(placed.layout, RowTiled) and (flags.consumers or op.pad is not None):
        raise UnknownFunction(f"padding of '{op.inputs[0].name}' with tiles of {op.inputs[0].type} vs tiles of static "
                              "rows", operator=op, fix="pad rows before they are joined")
    # A chunk that the program says is always full still needs a value where its physical dimension is not innermost.
    pad = op.pad if op.pad is not None or whole or not placed.layout.inner else 0
    outputs = ops.reshape(placed.stream, chunk=op.chunk, dim=op.dim + placed.layout.inner, pad=pad,
                          flag_rank=op.flag_rank + placed.layout.inner, name=ctx.own(op))
    ctx.define(data, outputs[0], placed.layout)
    if not isinstance(placed.layout, RowTiled):
        ctx.define(flags, outputs[1], ctx.layout(flags))
