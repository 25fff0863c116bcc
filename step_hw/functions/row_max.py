"""row_max: the largest element of each row."""

from .binary import binary_op
from .rowtree import RowTree, row_fold

__all__ = ["datapath", "fold"]


def datapath(function, in_types, out_type, *, rows_per_cycle, k_per_cycle):
    """``row_max`` in a map unit."""
    (tile,) = in_types
    op = binary_op("max", [tile.dtype], out_type.dtype)
    return RowTree(op, tile, out_type.dtype, rows_per_cycle, assemble=True)


def fold(function, in_types, state_type, *, rows_per_cycle, k_per_cycle):
    """``row_max`` in accum and scan."""
    (tile,) = in_types
    return row_fold(binary_op("max", [tile.dtype], state_type.dtype), tile, state_type, rows_per_cycle)
