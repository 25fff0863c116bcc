"""Functions at tile fidelity: the size of a result, its control value and what computing it costs; no contents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy

from step_lang.errors import UnknownFunction
from step_lang.types import BufferRef, Selector, Tile, Tuple

from ..compiled import compiled
from ..values import INDEX, NO_OPERATION, operate, operation_of, selector_index, sign_of
from .cost import BY_ROWS, INTERVAL, MEMORY_IN, TILE, beats, ceil_div, work_of
from .network import NO_VALUE

__all__ = ["FUNCTION_END", "NO_INDEX", "UNKNOWN_ROWS", "arity_of", "call_cost", "element_bytes", "led",
           "pack_function", "result", "result_cols", "result_rows", "sizes_fit", "tail"]

(ARITY, SIZE, FLOPS, OPERATION, FORM, OUT_FORM, WIDTH, CONSTANT, TRANSPOSED, BYTES0, BYTES1,
 DYNAMIC, CAPACITY, FUNCTION_END) = range(14)
"""Parameters of a unit that applies a function; ``BYTES``: of an element of a tile."""

SAME, BROADCAST, PRODUCT, ONE_COLUMN, MORE_ROWS, MORE_COLS, VALUE_ROWS, PADDING_ROWS, ONE_MORE_ROW, SCALAR = range(10)
_SIZES = {"matmul": PRODUCT, "row_sum": ONE_COLUMN, "row_max": ONE_COLUMN, "concat_rows": MORE_ROWS,
          "concat_cols": MORE_COLS, "set_offset": VALUE_ROWS, "append_row": ONE_MORE_ROW, "selector_index": SCALAR}
NOTHING, OF_INPUT, OF_RESULT, MULTIPLY_ADDS = range(4)
NO_INDEX = NO_VALUE + 1
"""Control value of the index of a selector that does not name exactly one stream."""
UNKNOWN_ROWS = -2
"""Rows of a result that a value says which the model does not compute."""


def element_bytes(type_: Any) -> int:
    """Bytes of an element of a tile; of anything else, which counts as a tile of 1 x 1."""
    if isinstance(type_, Tile):
        return int(type_.dtype.bytes)
    if isinstance(type_, (Selector, BufferRef, Tuple)):
        return int(type_.nbytes)
    raise AssertionError(type_)


def pack_function(op: Any, unit: int, build: Any) -> None:
    """The function of ``op`` and the types it works on."""
    par, fn = build.par[unit], op.fn
    types: Sequence[Any] = [stream.type for stream in op.inputs]
    out = op.output.type
    par[ARITY] = len(types)
    if len(types) > 2:
        raise UnknownFunction(f"function {fn.name!r} of {len(types)} streams vs at most 2 at tile fidelity",
                              operator=op)
    binary = len(types) == 2
    par[SIZE] = _SIZES.get(fn.name, BROADCAST if binary else SAME)
    if fn.name == "set_offset" and fn.params["padding"]:
        par[SIZE] = PADDING_ROWS
    if sympy.sympify(op.per_call_flops()) != 0:
        par[FLOPS] = MULTIPLY_ADDS if fn.name == "matmul" else OF_RESULT if binary else OF_INPUT
    par[OPERATION] = operation_of(fn, types, out)
    if par[OPERATION] == INDEX:
        par[WIDTH] = types[0].n
    elif par[OPERATION] != NO_OPERATION:
        par[FORM], par[OUT_FORM] = sign_of(types[0].dtype), sign_of(out.dtype)
        par[CONSTANT] = int(fn.params.get("factor", 0)) if fn.name == "scale" else 0
    par[TRANSPOSED] = bool(fn.params.get("transpose_b"))
    par[[BYTES0, BYTES1]] = element_bytes(types[0]), element_bytes(types[-1]) if binary else 0
    par[CAPACITY] = fn.params.get("capacity") or 0
    par[DYNAMIC] = isinstance(out, Tile) and not isinstance(out.rows, int)


@compiled
def arity_of(par):
    """Inputs."""
    return par[ARITY]


@compiled
def result(net, par, a, b):
    """Control value of the result of operands with control values ``a`` and ``b``."""
    operation = par[OPERATION]
    if operation == NO_OPERATION or a == NO_VALUE:
        return NO_VALUE
    if operation == INDEX:
        index = selector_index(net, a, par[WIDTH])
        return index if index >= 0 else NO_INDEX
    if par[ARITY] == 1:
        b = par[CONSTANT]
    if b == NO_VALUE:
        return NO_VALUE
    return operate(operation, a, b, par[FORM], par[OUT_FORM])


@compiled
def sizes_fit(par, rows, cols, rows1, cols1):
    """Do the tiles' sizes fit one another? Those that are static were checked when the program was built."""
    size = par[SIZE]
    if par[ARITY] != 2:
        return True
    if size == BROADCAST:
        return (rows == rows1 or rows == 1 or rows1 == 1) and (cols == cols1 or cols == 1 or cols1 == 1)
    if size == PRODUCT:
        return cols == (cols1 if par[TRANSPOSED] != 0 else rows1)
    if size == MORE_ROWS or size == ONE_MORE_ROW:
        return cols == cols1
    if size == MORE_COLS:
        return rows == rows1
    return True


@compiled
def _broadcast(size, other):
    """Rows or columns of what two tiles make that fit: one repeats for as many as the other has, none included."""
    return size if other == 1 else other


@compiled
def result_rows(net, par, rows, rows1, value):
    """Rows of the result; -1 for more than there are or may be, and `UNKNOWN_ROWS`."""
    size = par[SIZE]
    if size == BROADCAST:
        return _broadcast(rows, rows1)
    if size == MORE_ROWS:
        return rows + rows1
    if size == ONE_MORE_ROW:
        return rows + 1 if par[CAPACITY] == 0 or rows < par[CAPACITY] else -1
    if size == SCALAR:
        return 1
    if size == VALUE_ROWS or size == PADDING_ROWS:
        if value == NO_VALUE:
            return UNKNOWN_ROWS
        if value > rows:
            return -1
        return value if size == VALUE_ROWS else rows - value
    return rows


@compiled
def result_cols(par, cols, rows1, cols1):
    """Columns of the result."""
    size = par[SIZE]
    if size == BROADCAST:
        return _broadcast(cols, cols1)
    if size == PRODUCT:
        return rows1 if par[TRANSPOSED] != 0 else cols1
    if size == ONE_COLUMN or size == SCALAR:
        return 1
    if size == MORE_COLS:
        return cols + cols1
    return cols


@compiled
def led(net, u, par, work, out_rows, out_cols):
    """Of the ``work`` cycles of a map, those until the first beat of the result is made; and the beats that follow the
    last one to be made, as what is folded over a grid leaves when it is complete: a row, a column, or each beat by
    itself."""
    t = net.cost[u, TILE]
    if t == 0:
        return work, 0
    down, across = max(1, ceil_div(out_rows, t)), max(1, ceil_div(out_cols, t))
    parts = down * across
    if net.cost[u, BY_ROWS] == 0:
        if par[SIZE] == PRODUCT:
            parts = across
        elif par[SIZE] == ONE_COLUMN:
            parts = 1
    return ceil_div(work, parts), down * across // parts - 1


@compiled
def tail(net, u, par, work, k, folds, rows, out_rows, out_cols, cols):
    """Of ``work`` cycles, those that come after the last beat of input ``k`` is there."""
    t, interval = net.cost[u, TILE], net.cost[u, INTERVAL]
    if t == 0:
        return 1
    if par[SIZE] != PRODUCT:
        return interval
    down, deep = max(1, ceil_div(rows, t)), max(1, ceil_div(cols, t))
    if par[DYNAMIC] != 0:
        # In map a row of A meets all of B, in accum a row of B all rows of A.
        if folds:
            return ceil_div(work, deep) if k == 1 else 1
        return ceil_div(work, down) if k == 0 else 1
    # In accum a column of A meets a row of B; else a tile of B meets a column of A.
    return ceil_div(work, deep) if folds and k == 0 else down * interval


@compiled
def call_cost(net, u, par, rows, cols, rows1, cols1, out_rows, out_cols):
    """Cycles of one application."""
    kind = par[FLOPS]
    flops = 0
    if kind == MULTIPLY_ADDS:
        flops = 2 * rows * cols * out_cols
    elif kind == OF_INPUT:
        flops = rows * cols
    elif kind == OF_RESULT:
        flops = _broadcast(rows, rows1) * _broadcast(cols, cols1)
    if net.cost[u, TILE] > 0:
        count = max(beats(net, u, rows, cols), beats(net, u, out_rows, out_cols))
        if kind == MULTIPLY_ADDS:
            t = net.cost[u, TILE]
            count = max(count, ceil_div(out_rows, t) * ceil_div(out_cols, t) * ceil_div(cols, t))
        return work_of(net, u, flops, 0, count)
    nbytes = 0
    if net.cost[u, MEMORY_IN] & 1:
        nbytes = rows * cols * par[BYTES0]
    if net.cost[u, MEMORY_IN] & 2:
        nbytes = max(nbytes, rows1 * cols1 * par[BYTES1])
    return work_of(net, u, flops, nbytes, 0)
