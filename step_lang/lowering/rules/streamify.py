"""streamify: whole passes as they are; an affine view, or another order of a static buffer, as a view of tiles."""

from __future__ import annotations

import math

from step_lang import ops
from step_lang.dims import is_static

from ..context import Lowering
from ..layout import Referenced, Tiled
from ..orders import Preferences

KIND = "streamify"


def preferences(op) -> Preferences:
    """A static buffer, or a view of any, is read in any order; another keeps the order in which it was filled."""
    buffers = op.inputs[0]
    free = op.view_shape is not None or all(is_static(dim) for dim in buffers.type.shape)
    return Preferences([] if free else [[buffers, op.output]])


def lower(ctx: Lowering, op) -> None:
    buffers = op.inputs[0]
    placed = ctx.get(buffers)
    assert isinstance(placed.layout, Referenced)
    content = placed.layout.content
    layout = ctx.layout(op.output)
    shape: tuple | None = None
    stride: tuple | None = None
    if op.view_shape is not None:
        shape, stride = op.view_shape, op.view_stride
    elif isinstance(layout, Tiled) and layout.order != placed.order:
        shape = buffers.type.shape
        stride = tuple(math.prod(shape[i + 1:]) for i in range(len(shape)))
    if shape is not None and isinstance(content, Tiled):
        assert isinstance(layout, Tiled) and stride is not None  # as its content; given with shape
        steps = {"col": (content.rows, 1), "row": (1, content.cols)}[content.order]  # next column, next row
        inner = steps if layout.order == "col" else steps[::-1]
        stride = tuple(step * content.count for step in stride) + inner
        shape = tuple(shape) + layout.dims
    ref = None if op.ref is None else ctx.single(op.ref)
    stream = ops.streamify(placed.stream, ref=ref, repeat=op.repeat if ref is None else None, shape=shape,
                           stride=stride, name=ctx.own(op))
    ctx.define(op.output, stream, layout)
