"""Contents of the memory: tensors to per-channel files for the simulator, and back.

A tensor lies tile-major: its physical tiles one after the other, row-major over the grid, each tile contiguous with its
elements row-major, little-endian, padded to ``element_bytes``. A dimension of size 1 has tiles of size 1. ``bool``
takes a bit
an element. A tile's bytes are therefore the data bits of the beat that carries it.
"""

from pathlib import Path

import numpy as np

from step_lang.errors import HardwareTooSmall, TensorError
from step_lang.memory_config import MemoryConfig
from step_lang.unitgraph import TensorPlacement

__all__ = ["MemoryImage", "tile_bytes", "tile_values"]


def tile_bytes(tensor: np.ndarray, grid: tuple[int, int], element_bytes: int) -> np.ndarray:
    """uint8 [tiles, element_bytes] of a matrix cut into ``grid`` (rows, cols) of tiles; `TensorError` if it does not
    cut."""
    tensor = np.asarray(tensor)
    if tensor.ndim != 2 or not grid[0] or not grid[1] or tensor.shape[0] % grid[0] or tensor.shape[1] % grid[1]:
        raise TensorError(
            f"tensor of shape {list(tensor.shape)} vs a grid of {grid[0]} x {grid[1]} tiles of equal size"
        )
    rows, cols = tensor.shape[0] // grid[0], tensor.shape[1] // grid[1]
    tiles = tensor.reshape(grid[0], rows, grid[1], cols).transpose(0, 2, 1, 3).reshape(grid[0] * grid[1], rows * cols)
    if tensor.dtype == np.bool_:
        raw = np.packbits(tiles, axis=1, bitorder="little")
    else:
        raw = np.ascontiguousarray(tiles).view(np.uint8).reshape(len(tiles), -1)
    if raw.shape[1] > element_bytes:
        raise TensorError(f"tile of {rows} x {cols} {tensor.dtype}: {raw.shape[1]} bytes vs {element_bytes} in memory")
    return np.pad(raw, ((0, 0), (0, element_bytes - raw.shape[1])))


def tile_values(raw: np.ndarray, shape: tuple[int, int], grid: tuple[int, int], dtype) -> np.ndarray:
    """The matrix of ``shape`` and ``dtype`` whose `tile_bytes` are ``raw``."""
    dtype = np.dtype(dtype)
    rows, cols = shape[0] // grid[0], shape[1] // grid[1]
    if dtype == np.bool_:
        tiles = np.unpackbits(raw, axis=1, count=rows * cols, bitorder="little").astype(bool)
    else:
        tiles = np.ascontiguousarray(raw[:, : rows * cols * dtype.itemsize]).view(dtype)
    return tiles.reshape(grid[0], grid[1], rows, cols).transpose(0, 2, 1, 3).reshape(shape)


class MemoryImage:
    """Contents of a memory, zero where nothing was put.

    Parameters
    ----------
    memory : MemoryConfig
    """

    def __init__(self, memory: MemoryConfig):
        self.memory = memory
        self.data = np.zeros(memory.capacity_bytes, dtype=np.uint8)
        self.used = 0
        """Bytes up to the end of the last tensor."""

    def put(self, placement: TensorPlacement, tensor: np.ndarray) -> None:
        """Store ``tensor`` at its place. Raises `TensorError` (shape, bytes) or `HardwareTooSmall`."""
        self._check(placement)
        raw = tile_bytes(tensor, placement.grid, placement.element_bytes)
        self.data[placement.base : placement.base + raw.size] = raw.reshape(-1)

    def get(self, placement: TensorPlacement, shape: tuple[int, int], dtype) -> np.ndarray:
        """The tensor of ``shape`` and ``dtype`` at this place."""
        self._check(placement)
        size = placement.grid[0] * placement.grid[1] * placement.element_bytes
        raw = self.data[placement.base : placement.base + size].reshape(-1, placement.element_bytes)
        return tile_values(raw, shape, placement.grid, dtype)

    def _check(self, placement: TensorPlacement) -> None:
        end = placement.base + placement.grid[0] * placement.grid[1] * placement.element_bytes
        if placement.base % self.memory.alignment:
            raise TensorError(
                f"tensor '{placement.name}': address {placement.base} vs a multiple of {self.memory.alignment}"
            )
        if end > self.memory.capacity_bytes:
            raise HardwareTooSmall(
                f"tensor '{placement.name}' ends at byte {end} vs memory.capacity_bytes = {self.memory.capacity_bytes}",
                fix="raise memory.capacity_bytes",
            )
        self.used = max(self.used, end)

    @property
    def used_lines(self) -> int:
        """Lines up to the end of the last tensor: what ``+hbm_dump_lines`` needs, at least 1."""
        return max(1, -(-self.used // self.memory.alignment))

    def write(self, prefix: str | Path) -> None:
        """Write ``<prefix><channel>.hex`` for ``+hbm_load=<prefix>``."""
        memory, lines = self.memory, self.used_lines
        digits = 2 * memory.burst_bytes
        bursts = self.data.reshape(-1, memory.channels, memory.burst_bytes)[:lines]
        for channel in range(memory.channels):
            text = bursts[:, channel, ::-1].tobytes().hex()  # a word is written from its most significant digit
            words = "\n".join(text[i : i + digits] for i in range(0, len(text), digits))
            Path(f"{prefix}{channel}.hex").write_text(f"@0\n{words}\n")

    @classmethod
    def read(cls, memory: MemoryConfig, prefix: str | Path) -> "MemoryImage":
        """Read the files of ``+hbm_dump=<prefix>``. Raises `TensorError` if one is missing or malformed."""
        image = cls(memory)
        bursts = image.data.reshape(-1, memory.channels, memory.burst_bytes)
        for channel in range(memory.channels):
            path = Path(f"{prefix}{channel}.hex")
            try:
                words = [line for line in path.read_text().split("\n") if line and line[0] not in "/@"]
                raw = np.frombuffer(bytes.fromhex("".join(words)), dtype=np.uint8).reshape(-1, memory.burst_bytes)
                bursts[: len(raw), channel] = raw[:, ::-1]
            except OSError as error:
                raise TensorError(f"memory dump '{path}': {error.strerror} vs a file the simulation wrote") from None
            except ValueError as error:
                raise TensorError(
                    f"memory dump '{path}': {error} vs lines of {2 * memory.burst_bytes} hex digits"
                ) from None
        return image
