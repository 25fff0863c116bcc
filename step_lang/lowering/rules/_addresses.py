"""Numbers of logical tiles as numbers of physical tiles."""

from __future__ import annotations

from step_lang import fn, ops
from step_lang.errors import BadParameter
from step_lang.stream import Stream

from ..context import Lowering
from ..layout import Layout, Tiled

__all__ = ["physical_addresses"]


def physical_addresses(ctx: Lowering, op, addresses: Stream, layout: Layout) -> Stream:
    """Addresses ``[..]`` of tiles of ``op.grid`` as those of their physical tiles ``[.., outer, inner]``, in the order
    of ``layout``; as they are where tiles are 1 x 1.

    Both kinds of tiles are numbered row-major over the whole tensor. So the first physical tile of logical tile ``a``
    is at a multiple of ``a`` only where a logical tile is one physical tile high, or all of the tensor wide. Raises
    `BadParameter` for another tensor.
    """
    if not isinstance(layout, Tiled):
        return addresses
    rows, columns = op.grid
    if columns > 1 and layout.rows > 1:
        height = layout.rows * ctx.tile
        raise BadParameter(
            f"tiles of {op.tile.rows} x {op.tile.cols} in a grid of {rows} x {columns} of tensor '{op.tensor.name}', "
            f"at random: {layout.rows} physical tiles high and {columns} to a row vs one of the two", operator=op,
            fix=f"keep the tensor one tile wide, as {op.tile.rows * rows * columns} x {op.tile.cols}, or use tiles of "
                f"{ctx.tile} rows instead of {height}")
    across = columns * layout.cols   # physical tiles of a row of the tensor
    steps = {"col": (1, across), "row": (across, 1)}[layout.order]
    function = fn.affine_addresses((1, *layout.dims), stride=(0, *steps), scale=layout.count)
    return ops.flat_map(function, addresses, name=ctx.name(f"{op.name}_tiles"))
