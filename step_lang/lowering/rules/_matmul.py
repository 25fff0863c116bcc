"""matmul over grids of tiles: docs/DESIGN.md, section 6."""

from __future__ import annotations

from step_lang import ops
from step_lang.stream import Stream

from ..context import Lowering, may_be_bare
from ..layout import Order, RowTiled, Tiled
from ..orders import Preferences

__all__ = ["b_order", "lower_accum", "lower_map", "preferences"]


def b_order(op) -> Order:
    """Order in which B is consumed: in map by columns of the product, in accum by steps of K."""
    transposed = op.fn.params["transpose_b"]
    return "col" if transposed == (op.kind == "accum") else "row"


def preferences(op) -> Preferences:
    """A is buffered anyway and read as needed; by columns it needs less."""
    a, b = op.inputs
    return Preferences([], [(a, "col"), (b, b_order(op)), (op.output, "col")])


def _as_grid(ctx: Lowering, op, index: int, order: Order | None) -> tuple[Stream, Order]:
    """The input with its two grid dimensions, which 1 x 1 tiles get here."""
    placed = ctx.input(op, index, order)
    if placed.layout.inner:
        return placed.stream, placed.order or "row"
    stream = ctx.repeated(placed.stream, 1, f"{placed.stream.name}_line")
    return ctx.repeated(stream, 1, f"{placed.stream.name}_grid"), "col"


def _finish(ctx: Lowering, op, product) -> None:
    """``product(name)`` makes the grid ``[.., J, I]``; 1 x 1 results lose it."""
    layout = ctx.layout(op.output, "col")
    if isinstance(layout, Tiled):
        stream = product(ctx.own(op))
    else:
        stream = ops.flatten(product(ctx.name(f"{op.name}_grid")), 0, 2, name=ctx.own(op))
    ctx.define(op.output, stream, layout)


def _sizes(a: Stream, a_order: Order, b: Stream, its_order: Order, transposed: bool) -> tuple[int, int, int]:
    """I, K, J in physical tiles."""
    k, i = a.shape[-2:] if a_order == "col" else a.shape[:-3:-1]
    across, down = b.shape[-2:] if its_order == "col" else b.shape[:-3:-1]
    return i, k, down if transposed else across


def lower_map(ctx: Lowering, op) -> None:
    """Order (j, k, i): A is buffered and read J times, each tile of B serves I tiles of A."""
    a, a_order = _as_grid(ctx, op, 0, None)
    b, order = _as_grid(ctx, op, 1, b_order(op))
    i, k, j = _sizes(a, a_order, b, order, op.fn.params["transpose_b"])
    if isinstance(ctx.layout(op.output), RowTiled):
        _lower_map_rows(ctx, op, a, b, order, k, j)
        return
    bare = may_be_bare(op.inputs[0])
    if a_order == "row" or bare:    # one bare stop must stay one: the passes are part of a view
        a = ctx.replay(a, (j, k, i), (0, i, 1) if a_order == "col" else (0, 1, k), f"{a.name}_passes")
    else:
        a = ctx.passes(a, 2, j, f"{a.name}_passes")
    b = ctx.repeated(b, i, f"{b.name}_rows")
    _finish(ctx, op, lambda name: ops.accum(
        op.fn, a, b, rank=1, inner=1, hollow=bare, compute_bw=op.compute_bw, name=name))


def _lower_map_rows(ctx: Lowering, op, a: Stream, b: Stream, order: Order, k: int, j: int) -> None:
    """A of dynamic rows, order (i, j, k): the whole of B is buffered and read once for each row of A's tiles, which is
    read J times. So nothing but the stream of rows has a dynamic size."""
    layout = ctx.layout(op.output)
    assert isinstance(layout, RowTiled)
    rows = ctx.buffer(a, 1)
    # The grid of B as it lies: k innermost where its columns are outermost (or, transposed, its rows).
    along = (k, 1) if (order == "col") != op.fn.params["transpose_b"] else (1, j)
    passes = ctx.view(rows, (j, k), (0, 1), f"{a.name}_passes")
    weights = ops.streamify(ctx.buffer(b, 2), ref=rows, shape=(j, k), stride=along, name=ctx.name(f"{b.name}_passes"))
    hollow = may_be_bare(op.inputs[0])
    stream = ops.accum(op.fn, passes, weights, rank=1, hollow=hollow, compute_bw=op.compute_bw, name=ctx.own(op))
    ctx.define(op.output, ctx.aligned(stream, layout), layout)


def lower_accum(ctx: Lowering, op) -> None:
    """Order (k, n, i) in each element: a column of A is buffered and read N times, each tile of B serves I tiles."""
    a, a_order = _as_grid(ctx, op, 0, None)
    b, order = _as_grid(ctx, op, 1, b_order(op))
    i, k, n = _sizes(a, a_order, b, order, op.fn.params["transpose_b"])
    if isinstance(ctx.layout(op.output), RowTiled):
        _lower_accum_rows(ctx, op, a, b, k, n)
        return
    if a_order == "row":
        a = ctx.replay(a, (k, n, i), (1, 0, k), f"{a.name}_passes")
    elif may_be_bare(op.inputs[0]):     # one bare stop must stay one: the passes are part of a view of the whole grid
        a = ctx.replay(a, (k, n, i), (i, 0, 1), f"{a.name}_passes")
    else:
        a = ctx.passes(a, 1, n, f"{a.name}_passes")
    b = ctx.repeated(b, i, f"{b.name}_rows")
    _finish(ctx, op, lambda name: ops.accum(
        op.fn, a, b, rank=op.rank + 1, inner=2, init=op.init, hollow=op.hollow, compute_bw=op.compute_bw, name=name))


def _lower_accum_rows(ctx: Lowering, op, a: Stream, b: Stream, k: int, n: int) -> None:
    """A of dynamic rows, order (k, i, n): each column of A's tiles, of as many as there are, meets one row of B, which
    is buffered and read once for each tile of the column."""
    layout, inner = ctx.layout(op.output), ctx.layout(op.inputs[0])
    assert isinstance(layout, RowTiled) and isinstance(inner, RowTiled)
    columns = ctx.view(ctx.buffer(a, 2), (k, None), (1, k), f"{a.name}_columns")
    if columns.shape[-1] != inner.row_tiles:
        columns.assume((*columns.shape[:-1], inner.row_tiles))
    left = ctx.repeated(columns, n, f"{a.name}_passes")
    right = ops.streamify(ctx.buffer(b, 1), ref=columns, name=ctx.name(f"{b.name}_passes"))
    stream = ops.accum(op.fn, left, right, rank=op.rank + 1, inner=2, init=op.init, hollow=op.hollow,
                       compute_bw=op.compute_bw, name=ctx.own(op))
    ctx.define(op.output, ctx.aligned(stream, layout), layout)
