"""random_offchip_store: tiles to given addresses."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dims import Shape, format_shape, is_static, shapes_equal
from ..errors import BadParameter, ShapeMismatch, TypeMismatch
from ..operator import Operator
from ..program import Tensor
from ..stream import Stream
from ..tokens import TokenStream, data_nbytes
from ..types import Tile, Type, bool_, scalar
from ._offchip import check_addresses, grid_tiles, require_addresses
from ._tokens import require_same_stops

__all__ = ["RandomOffchipStore", "random_offchip_store"]


class RandomOffchipStore(Operator):
    """See `random_offchip_store`. Inputs: addresses, data."""

    kind = "random_offchip_store"
    category = "memory"
    ordered_access = True
    output_labels = ("ack",)
    optional_outputs = ("ack",)

    def __init__(self, addr: Stream, data: Stream, tensor: Tensor, rank: Any, name: str | None):
        self.tensor, self.rank = tensor, rank
        self.tensors_written = (tensor,)
        super().__init__([addr, data], name)

    def infer(self) -> list[tuple[Type, Shape]]:
        addr, data = self.inputs
        require_addresses(self, addr)
        if not isinstance(data.type, Tile) or data.type.dtype != self.tensor.dtype:
            raise TypeMismatch(f"stored type: {data.type} vs tiles of {self.tensor.dtype} of tensor "
                               f"'{self.tensor.name}'", operator=self, fix=f"cast to {self.tensor.dtype}")
        if not shapes_equal(addr.shape, data.shape):
            raise ShapeMismatch(f"shapes of '{addr.name}' and '{data.name}': {format_shape(addr.shape)} vs "
                                f"{format_shape(data.shape)}", operator=self, fix="give one address for each tile")
        self.tile = data.type
        self.grid = self.tensor.grid(self.tile, self)
        self.rank = self.positive("rank", self.rank, 0)
        chunk = addr.shape[addr.rank + 1 - self.rank:]
        if self.rank > addr.rank or not all(is_static(dim) and dim > 0 for dim in chunk):
            raise BadParameter(f"rank: {self.rank} vs a number of inner dimensions of {format_shape(addr.shape)} that "
                               "are static", operator=self)
        return [(scalar(bool_), addr.shape[:addr.rank + 1 - self.rank])]

    def interpret(self, ctx: Any, inputs: list[TokenStream]) -> list[TokenStream]:
        addr, data = inputs
        require_same_stops(inputs, [stream.name for stream in self.inputs])
        addresses = check_addresses(self, addr, self.tensor, self.grid)
        # Of several tiles for one address the last stays.
        places, last = np.unique(addresses[::-1], return_index=True)
        row, col = np.divmod(places, self.grid[1])
        if len(places):
            grid_tiles(ctx.tensors[self.tensor.name], self.tile)[row, col] = data.data[len(addresses) - 1 - last]
        ctx.offchip_write_bytes += data_nbytes(data.data)
        # One for the tile that closes a chunk. Its inner dimensions are static: a bare stop is above them.
        last = addr.stop >= self.rank
        stop, empty = addr.stop[last] - self.rank, addr.empty[last]
        count = int(np.count_nonzero(~empty))
        return [TokenStream(addr.rank - self.rank, stop, empty, np.ones((count, 1, 1), dtype=bool))]

    def offchip_write(self) -> Any:
        return self.inputs[1].nbytes

    def onchip(self) -> Any:
        return 2 * self.inputs[1].type.nbytes

    def describe(self) -> str:
        return f"{self.tensor.name} tile {self.tile.rows}x{self.tile.cols}"


def random_offchip_store(addr: Stream, data: Stream, tensor: Tensor, *, rank: int = 0,
                         name: str | None = None) -> Stream:
    """Write each tile of ``data`` to tile ``addr`` (u32, tiles numbered row-major) of ``tensor``, in order: of several
    for one address the last stays. Returns an acknowledgement (bool, true) for each, of the same shape, which leaves
    when the tile is in memory: what depends on it reads the new contents. It may be left unused. With ``rank`` = b
    there is one for each chunk of the b inner dimensions, which are static: ``[D_a..D_b, D_{b-1}..D_0] -> [D_a..D_b]``.

    A tensor given to the interpreter keeps its contents where nothing writes. A tensor may be both stored to and read,
    both at random: keeping a read behind the store that it needs is the program's part. Raises `ShapeMismatch`,
    `BadParameter`, `TypeMismatch`, `TileDoesNotDivide`; at run time `ViewOutOfRange`, `MisalignedStreams`.
    """
    return RandomOffchipStore(addr, data, tensor, rank, name).output
