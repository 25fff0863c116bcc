"""linear_offchip_load: tiles of an off-chip tensor, in an affine order, once for each reference element."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dims import Shape
from ..errors import BadParameter
from ..lengths import check_length
from ..operator import Operator
from ..program import Tensor
from ..stream import Stream
from ..tokens import TokenStream, data_nbytes, data_take, pass_stops
from ..types import Type
from ._offchip import grid_tiles, tile_of
from ._tokens import passes
from ._views import check_view, view_indices

__all__ = ["LinearOffchipLoad", "linear_offchip_load"]


class LinearOffchipLoad(Operator):
    """See `linear_offchip_load`. ``view_shape`` and ``view_stride`` are in tiles, outermost first."""

    kind = "linear_offchip_load"
    category = "memory"

    def __init__(self, tensor: Tensor, tile: Any, ref: Stream | None, shape: Any, stride: Any, name: str | None):
        self.tensor, self.tile = tensor, tile
        self.view_shape, self.view_stride = shape, stride
        self.tensors_read = (tensor,)
        super().__init__([] if ref is None else [ref], name, getattr(tensor, "program", None))

    @property
    def ref(self) -> Stream | None:
        return self.inputs[0] if self.inputs else None

    def infer(self) -> list[tuple[Type, Shape]]:
        self.tile = tile_of(self, self.tensor, self.tile)
        self.grid = self.tensor.grid(self.tile, self)
        if self.view_shape is None and self.view_stride is not None:
            raise BadParameter(f"stride {self.view_stride!r} without a shape", operator=self, fix="give both")
        shape = self.grid if self.view_shape is None else self.view_shape
        self.view_shape, self.view_stride = check_view(
            self, shape, self.view_stride, self.grid[0] * self.grid[1], f"tiles of tensor '{self.tensor.name}'")
        if not self.view_shape and self.ref is None:
            raise BadParameter("view shape: () vs at least one dimension where there is no ref", operator=self)
        return [(self.tile, (self.ref.shape if self.ref else ()) + self.view_shape)]

    def interpret(self, ctx: Any, inputs: list[TokenStream]) -> list[TokenStream]:
        levels = len(self.view_shape)
        passed, size = inputs[0].elements if inputs else 1, math.prod(self.view_shape)
        check_length(passed * size, f"a view of {size} tiles {passed} times")
        stops = pass_stops(self.view_shape)
        view = view_indices(self.view_shape, self.view_stride)
        if inputs:
            stop, empty, position = passes(inputs[0], stops, levels)
            indices = view[position]
        else:
            stop, empty, indices = np.minimum(stops, levels - 1), np.zeros(len(stops), dtype=bool), view
        tiles = grid_tiles(ctx.tensors[self.tensor.name], self.tile)
        tiles = np.ascontiguousarray(tiles).reshape(-1, self.tile.rows, self.tile.cols)
        data = data_take(tiles, indices)
        ctx.offchip_read_bytes += data_nbytes(data)
        return [TokenStream(self.outputs[0].rank, stop, empty, data)]

    def offchip_read(self) -> Any:
        return self.output.nbytes

    def onchip(self) -> Any:
        return 2 * self.output.type.nbytes

    def describe(self) -> str:
        return f"{self.tensor.name} tile {self.tile.rows}x{self.tile.cols}"


def linear_offchip_load(tensor: Tensor, tile: Any, ref: Stream | None = None, shape: Sequence[int] | None = None,
                        stride: Sequence[int] | None = None, *, name: str | None = None) -> Stream:
    """Read tiles ``index = sum(i_k * stride_k)`` of ``tensor`` over ``shape``, once for each element of ``ref``.

    Parameters
    ----------
    tile : (rows, cols) or a `Tile`; must divide the tensor, whose tiles are numbered row-major.
    ref : ``[D_b..D_0]`` -> ``[D_b..D_0] + shape``; None: the view once, ``shape`` itself.
    shape, stride : in tiles, outermost first. Default: the whole grid, in order.

    Raises `TileDoesNotDivide`, `ViewOutOfRange`.
    """
    return LinearOffchipLoad(tensor, tile, ref, shape, stride, name).output
