"""Affine views over logical tiles as affine views over physical tiles."""

from __future__ import annotations

from collections.abc import Sequence

from step_lang.errors import ViewOutOfRange
from step_lang.operator import Operator

from ..layout import Layout, Tiled

__all__ = ["PhysicalView", "physical_view"]


class PhysicalView:
    """``shape`` and ``stride`` in physical tiles, and the dimensions that had to be split: ``splits`` lists, outermost
    first, how many dimensions each logical dimension became (1 or 2)."""

    def __init__(self, shape: list[int], stride: list[int], splits: list[int]):
        self.shape, self.stride, self.splits = tuple(shape), tuple(stride), splits


def physical_view(op: Operator, shape: Sequence[int], stride: Sequence[int], grid: tuple[int, int],
                  layout: Layout) -> PhysicalView:
    """The view ``sum(i_k * stride_k)`` of a row-major ``grid`` of logical tiles, over physical tiles.

    A dimension that runs past the end of a row of the grid is split where a row ends. Raises `ViewOutOfRange` for a
    view that is not affine over rows and columns.
    """
    _, columns = grid
    height, width = (layout.rows, layout.cols) if isinstance(layout, Tiled) else (1, 1)
    row_step, col_step = height * columns * width, width     # physical index of the next logical row and column
    sizes: list[int] = []
    steps: list[int] = []
    splits: list[int] = []
    last_column = 0
    for size, step in zip(shape, stride):
        # Views begin at tile 0, so a dimension can only move right (or, wrapping, down).
        down, along = divmod(step, columns) if size > 1 else (0, 0)
        parts = [(size, down, along)]
        if along * (size - 1) >= columns:
            per_row = columns // along
            if columns % along or size % per_row:
                raise _not_affine(op, shape, stride, grid)
            parts = [(size // per_row, down * per_row + 1, 0), (per_row, down, along)]
        splits.append(len(parts))
        for n, d, a in parts:
            sizes.append(n)
            steps.append(d * row_step + a * col_step)
            last_column += a * (n - 1)
    if last_column >= columns:
        raise _not_affine(op, shape, stride, grid)
    if isinstance(layout, Tiled):
        inner = {"col": ((layout.cols, 1), (layout.rows, columns * width)),
                 "row": ((layout.rows, columns * width), (layout.cols, 1))}[layout.order]
        for n, s in inner:
            sizes.append(n)
            steps.append(s)
    return PhysicalView(sizes, steps, splits)


def _not_affine(op: Operator, shape: Sequence[int], stride: Sequence[int], grid: tuple[int, int]) -> ViewOutOfRange:
    return ViewOutOfRange(
        f"view of shape {list(shape)}, stride {list(stride)}: a dimension runs past a row's end vs a grid of "
        f"{grid[0]} x {grid[1]} tiles", operator=op,
        fix="give rows and columns of the grid dimensions of their own")
