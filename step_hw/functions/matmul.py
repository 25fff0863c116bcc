"""matmul: an array of dot product cells, and an adder an element where groups are folded."""

from .grouped import grouped_datapath, grouped_fold

__all__ = ["datapath", "fold"]


def datapath(function, in_types, out_type, *, rows_per_cycle, k_per_cycle):
    """``matmul`` in a map unit."""
    return grouped_datapath(in_types, out_type, k_per_cycle, function.params["transpose_b"])


def fold(function, in_types, state_type, *, rows_per_cycle, k_per_cycle):
    """``matmul`` in accum and scan."""
    return grouped_fold(in_types, state_type, k_per_cycle, function.params["transpose_b"])
