"""Data types of streams: tiles, selectors, buffer references, tuples of these, and their element types."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import sympy

from .dims import (
    Dim,
    Shape,
    as_dim,
    as_shape,
    buffer_elements,
    dims_equal,
    format_shape,
    is_ragged,
    is_static,
    shapes_equal,
    whole,
)
from .errors import BadParameter

__all__ = [
    "DTYPES",
    "BufferRef",
    "DType",
    "Selector",
    "Tile",
    "Tuple",
    "Type",
    "bf16",
    "bool_",
    "fp16",
    "fp32",
    "int8",
    "int32",
    "scalar",
    "types_equal",
    "u32",
]


@dataclass(frozen=True)
class DType:
    """An element type. ``bits`` on a link, ``bytes`` in memory, ``numpy`` its numpy dtype."""

    name: str
    bits: int
    numpy: np.dtype

    @property
    def bytes(self) -> int:
        return -(-self.bits // 8)

    @property
    def is_float(self) -> bool:
        return self.name in ("bf16", "fp16", "fp32")

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__


bf16 = DType("bf16", 16, np.dtype(ml_dtypes.bfloat16))
fp16 = DType("fp16", 16, np.dtype(np.float16))
fp32 = DType("fp32", 32, np.dtype(np.float32))
int8 = DType("int8", 8, np.dtype(np.int8))
int32 = DType("int32", 32, np.dtype(np.int32))
u32 = DType("u32", 32, np.dtype(np.uint32))
bool_ = DType("bool", 1, np.dtype(np.bool_))

DTYPES: dict[str, DType] = {dtype.name: dtype for dtype in (bf16, fp16, fp32, int8, int32, u32, bool_)}
"""Element types by name."""


@dataclass(frozen=True)
class Tile:
    """A 2-D matrix of ``rows`` x ``cols`` elements, either of which may be dynamic."""

    rows: Dim
    cols: Dim
    dtype: DType

    def __post_init__(self) -> None:
        for field in ("rows", "cols"):
            dim = as_dim(getattr(self, field))
            if dim == 0:
                raise BadParameter(f"tile {field}: 0 vs at least 1")
            object.__setattr__(self, field, dim)
        if not isinstance(self.dtype, DType):
            raise BadParameter(f"tile dtype: {self.dtype!r} vs one of {', '.join(DTYPES)}")

    @property
    def nbytes(self) -> sympy.Expr:
        """Bytes of the tile in memory."""
        return sympy.Mul(self.rows, self.cols, self.dtype.bytes)

    @property
    def is_static(self) -> bool:
        return is_static(self.rows) and is_static(self.cols)

    def __str__(self) -> str:
        return f"Tile({self.rows}, {self.cols}, {self.dtype})"


@dataclass(frozen=True)
class Selector:
    """A multi-hot vector of ``n`` bits, 1 <= n <= 128."""

    n: int

    def __post_init__(self) -> None:
        bits = whole(self.n)
        if bits is None or not 1 <= bits <= 128:
            raise BadParameter(f"selector bits: {self.n!r} vs 1..128")
        object.__setattr__(self, "n", bits)

    @property
    def nbytes(self) -> sympy.Expr:
        """Bytes in memory, where an element takes a power of two."""
        return sympy.Integer(1 << (-(-self.n // 8) - 1).bit_length())

    def __str__(self) -> str:
        return f"Selector({self.n})"


@dataclass(frozen=True)
class BufferRef:
    """A read-only reference to on-chip memory that holds a tensor of ``shape`` of ``tile`` elements."""

    tile: Type
    shape: Shape

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", as_shape(self.shape))

    @property
    def nbytes(self) -> sympy.Expr:
        """Bytes of the reference itself (an u32), not of what it points to."""
        return sympy.Integer(4)

    @property
    def content_bytes(self) -> sympy.Expr:
        """Bytes of the buffer it points to, the largest where they differ."""
        return buffer_elements(self.shape) * self.tile.nbytes

    def __str__(self) -> str:
        return f"BufferRef({self.tile}, {format_shape(self.shape)})"


@dataclass(frozen=True)
class Tuple:
    """Several values that travel together."""

    members: tuple[Type, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", tuple(self.members))
        if len(self.members) < 2:
            raise BadParameter(f"tuple members: {len(self.members)} vs at least 2")

    @property
    def nbytes(self) -> sympy.Expr:
        return sympy.Add(*(member.nbytes for member in self.members))

    def __str__(self) -> str:
        return "(" + ", ".join(map(str, self.members)) + ")"


Type = Tile | Selector | BufferRef | Tuple


def scalar(dtype: DType) -> Tile:
    """The 1 x 1 tile that carries an address, a count or a flag."""
    return Tile(1, 1, dtype)


def types_equal(a: Type, b: Type) -> bool:
    """Whether two types agree, dimensions compared as expressions. A ragged dimension accepts any."""
    if isinstance(a, Tile) and isinstance(b, Tile):
        return a.dtype == b.dtype and all(
            is_ragged(x) or is_ragged(y) or dims_equal(x, y) for x, y in ((a.rows, b.rows), (a.cols, b.cols)))
    if isinstance(a, BufferRef) and isinstance(b, BufferRef):
        return types_equal(a.tile, b.tile) and shapes_equal(a.shape, b.shape)
    if isinstance(a, Tuple) and isinstance(b, Tuple):
        return len(a.members) == len(b.members) and all(map(types_equal, a.members, b.members))
    return a == b
