"""flat_map: address functions work on 1 x 1 tiles, which lowering leaves as they are; tiles are split into rows."""

from __future__ import annotations

from step_lang import ops
from step_lang.errors import UnknownFunction

from ..context import Lowering
from ..orders import Preferences
from . import _split_rows

KIND = "flat_map"

ADDRESSES = ("address_range", "affine_addresses", "counter")
"""Functions that make addresses of numbers."""


def preferences(op) -> Preferences:
    """Addresses are not tiled."""
    return _split_rows.preferences(op) if op.fn.name == "split_rows" else Preferences()


def lower(ctx: Lowering, op) -> None:
    if op.fn.name == "split_rows":
        _split_rows.lower_flat_map(ctx, op)
        return
    if op.fn.name not in ADDRESSES:
        raise UnknownFunction(f"function {op.fn.name!r} in flat_map vs those that lowering knows: "
                              f"{', '.join(ADDRESSES)}, split_rows", operator=op)
    stream = ops.flat_map(op.fn, ctx.get(op.inputs[0]).stream, compute_bw=op.compute_bw, name=ctx.own(op))
    ctx.define(op.output, stream, ctx.layout(op.output))
