"""row_sum: for bf16 dot products against ones, for integers a tree of adders."""

from .binary import binary_op
from .grouped import grouped_datapath, grouped_fold
from .rowtree import RowTree, row_fold

__all__ = ["datapath", "fold"]


def datapath(function, in_types, out_type, *, rows_per_cycle, k_per_cycle):
    """``row_sum`` in a map unit."""
    if out_type.dtype.is_float:
        return grouped_datapath(in_types, out_type, k_per_cycle)
    add = binary_op("add", [out_type.dtype], out_type.dtype)
    return RowTree(add, in_types[0], out_type.dtype, rows_per_cycle, assemble=True)


def fold(function, in_types, state_type, *, rows_per_cycle, k_per_cycle):
    """``row_sum`` in accum and scan."""
    if state_type.dtype.is_float:
        return grouped_fold(in_types, state_type, k_per_cycle)
    return row_fold(binary_op("add", [state_type.dtype], state_type.dtype), in_types[0], state_type, rows_per_cycle)
