"""random_offchip_load: the tile at each address."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dims import Shape
from ..operator import Operator
from ..program import Tensor
from ..stream import Stream
from ..tokens import TokenStream, data_nbytes
from ..types import Type
from ._offchip import check_addresses, grid_tiles, require_addresses, tile_of

__all__ = ["RandomOffchipLoad", "random_offchip_load"]


class RandomOffchipLoad(Operator):
    """See `random_offchip_load`."""

    kind = "random_offchip_load"
    category = "memory"
    ordered_access = True

    def __init__(self, addr: Stream, tensor: Tensor, tile: Any, name: str | None):
        self.tensor, self.tile = tensor, tile
        self.tensors_read = (tensor,)
        super().__init__([addr], name)

    def infer(self) -> list[tuple[Type, Shape]]:
        require_addresses(self, self.inputs[0])
        self.tile = tile_of(self, self.tensor, self.tile)
        self.grid = self.tensor.grid(self.tile, self)
        return [(self.tile, self.inputs[0].shape)]

    def interpret(self, ctx: Any, inputs: list[TokenStream]) -> list[TokenStream]:
        row, col = np.divmod(check_addresses(self, inputs[0], self.tensor, self.grid), self.grid[1])
        data = grid_tiles(ctx.tensors[self.tensor.name], self.tile)[row, col]
        ctx.offchip_read_bytes += data_nbytes(data)
        return [inputs[0].with_data(data)]

    def offchip_read(self) -> Any:
        return self.output.nbytes

    def onchip(self) -> Any:
        return 2 * self.output.type.nbytes

    def describe(self) -> str:
        return f"{self.tensor.name} tile {self.tile.rows}x{self.tile.cols}"


def random_offchip_load(addr: Stream, tensor: Tensor, tile: Any, *, name: str | None = None) -> Stream:
    """Read tile ``addr`` (u32, tiles numbered row-major) of ``tensor`` for each element of ``addr``; same shape.

    ``tile`` is (rows, cols) or a `Tile`. Raises `TypeMismatch`, `TileDoesNotDivide`; at run time `ViewOutOfRange` for
    an address outside the tensor.
    """
    return RandomOffchipLoad(addr, tensor, tile, name).output
