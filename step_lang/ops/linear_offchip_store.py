"""linear_offchip_store: tiles to an off-chip tensor, in order of arrival."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dims import Shape
from ..errors import BadParameter, ProgramError, ShapeMismatch, TypeMismatch
from ..operator import Operator
from ..program import Tensor
from ..stream import Stream
from ..tokens import TokenStream, data_length, data_nbytes
from ..types import Tile, Type
from ._offchip import grid_tiles, tile_of
from ._views import check_view, view_indices, visits_once

__all__ = ["LinearOffchipStore", "linear_offchip_store"]


class LinearOffchipStore(Operator):
    """See `linear_offchip_store`. ``view_shape`` and ``view_stride`` are in tiles, outermost first."""

    kind = "linear_offchip_store"
    category = "memory"

    def __init__(self, stream: Stream, tensor: Tensor, tile: Any, shape: Any, stride: Any, name: str | None):
        self.tensor, self.tile = tensor, tile
        self.view_shape, self.view_stride = shape, stride
        self.tensors_written = (tensor,)
        super().__init__([stream], name)

    def infer(self) -> list[tuple[Type, Shape]]:
        type_ = self.inputs[0].type
        if not isinstance(type_, Tile) or type_.dtype != self.tensor.dtype:
            raise TypeMismatch(f"stored type: {type_} vs tiles of {self.tensor.dtype} of tensor '{self.tensor.name}'",
                               operator=self, fix=f"cast to {self.tensor.dtype}")
        if self.tile is not None:
            tile = tile_of(self, self.tensor, self.tile)
            if tile != type_:
                raise TypeMismatch(f"stored type: {type_} vs {tile}", operator=self)
        self.tile = type_
        self.grid = self.tensor.grid(type_, self)
        size = self.grid[0] * self.grid[1]
        if self.view_shape is None:
            if self.view_stride is not None:
                raise BadParameter(f"stride {self.view_stride!r} without a shape", operator=self, fix="give both")
            self.view_shape = self.grid
        self.view_shape, self.view_stride = check_view(
            self, self.view_shape, self.view_stride, size, f"tiles of tensor '{self.tensor.name}'")
        if not visits_once(self.view_shape, self.view_stride):
            indices = view_indices(self.view_shape, self.view_stride)
            raise BadParameter(f"view of shape {list(self.view_shape)}, stride {list(self.view_stride)}: "
                               f"{len(indices)} tiles vs {len(np.unique(indices))} positions", operator=self,
                               fix="write each position once")
        count = self.inputs[0].elements
        if count.is_number and int(count) > math.prod(self.view_shape):
            raise self._too_many(int(count))
        return []

    def check(self) -> None:
        """Raise for a second linear store to the tensor: every view begins at position 0, and who is last there would
        be timing."""
        for other in self.program.operators:
            if other is self:
                return
            if isinstance(other, LinearOffchipStore) and other.tensor is self.tensor:
                raise ProgramError(f"tensor '{self.tensor.name}': written here vs by {other.kind} '{other.name}' "
                                   f"({other.source})", operator=self, fix="store to a tensor of its own")

    def _too_many(self, count: int) -> ShapeMismatch:
        room = int(np.prod(self.view_shape))
        return ShapeMismatch(f"tiles stored to tensor '{self.tensor.name}': {count} vs {room} positions",
                             operator=self, fix="make the tensor larger or store fewer tiles")

    def interpret(self, ctx: Any, inputs: list[TokenStream]) -> list[TokenStream]:
        data = inputs[0].data
        count = data_length(data)
        indices = view_indices(self.view_shape, self.view_stride)
        if count > len(indices):
            raise self._too_many(count)
        row, col = np.divmod(indices[:count], self.grid[1])
        if count:
            grid_tiles(ctx.tensors[self.tensor.name], self.tile)[row, col] = data
        ctx.offchip_write_bytes += data_nbytes(data)
        return []

    def offchip_write(self) -> Any:
        return self.inputs[0].nbytes

    def onchip(self) -> Any:
        return 2 * self.inputs[0].type.nbytes

    def describe(self) -> str:
        return f"{self.tensor.name} tile {self.tile.rows}x{self.tile.cols}"


def linear_offchip_store(stream: Stream, tensor: Tensor, tile: Any = None, shape: Sequence[int] | None = None,
                         stride: Sequence[int] | None = None, *, name: str | None = None) -> None:
    """Write the tiles of ``stream`` (any rank) to ``tensor``, the n-th to the n-th position of the view.

    Parameters
    ----------
    tile : (rows, cols), to be checked against the stream's.
    shape, stride : an affine view, in tiles, outermost first, no position twice. Default: the whole grid, in order.

    Positions nothing writes are zero. One tile more than there are positions is a `ShapeMismatch`. Raises
    `TileDoesNotDivide`, `TypeMismatch`, `ViewOutOfRange`.
    """
    LinearOffchipStore(stream, tensor, tile, shape, stride, name)
