"""Latency and interval of every hardware unit, stated once.

RTL is built to these numbers, each unit's bench measures them, and the performance model reads them.
Latency L: an output beat is offered L cycles after the beat that causes it was accepted (the link behind adds one).
Interval: cycles between accepted beats in steady state.

A compute unit whose function needs several steps for one element (interval > 1) walks the element while it is at the
head of its input links and accepts it with the last step; an element that arrives at an idle unit in cycle t is
accepted in cycle t + interval - 1. Bare stops and done are accepted in one cycle.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = [
    "LOAD_EMPTY_LATENCY", "Timing", "compute_timing", "contribution_stages", "function_timing", "load_timing",
    "rows_operand", "store_pending", "unit_timing",
]


@dataclass(frozen=True)
class Timing:
    """latency and interval in cycles."""

    latency: int
    interval: int


DOT_STAGES = 3
"""Pipeline registers of a dot product cell: operands, aligned products, sum (see step_hw/cells)."""

TREE_STAGES = 1
"""Pipeline registers of a row's tree of maxima or integer sums."""

CELL_STAGES: Mapping[str, int] = {}
"""Pipeline registers inside the element cell of a function, where it has any (before the result register)."""

_GROUPED = ("matmul", "row_sum")
_TREES = ("row_max", "int_row_sum")


def function_timing(name: str, *, tile: int, rows_per_cycle: int, k_per_cycle: int,
                    rows: int | None = None, depth: int | None = None) -> Timing:
    """Timing of a function's datapath in a ``map`` unit.

    ``matmul`` and ``row_sum`` take one group of ``k_per_cycle`` products a cycle out of ``depth`` (default T), and
    add the groups in one more register where there are several. Every other function serves ``rows_per_cycle`` of
    ``rows`` rows (default T) a cycle; the result register is its last stage. ``row_sum`` of integers is of the second
    sort and goes by the name ``int_row_sum`` here.
    """
    if name in _GROUPED:
        interval = -(-(depth or tile) // k_per_cycle)
        return Timing(DOT_STAGES + (interval > 1), interval)
    interval = -(-(rows or tile) // rows_per_cycle)
    return Timing(1 + CELL_STAGES.get(name, 0), interval)


def _hardware_name(function: Any, in_types: Sequence[Any]) -> str:
    return "int_row_sum" if function.name == "row_sum" and not in_types[0].dtype.is_float else function.name


def contribution_stages(params: Mapping[str, Any]) -> int:
    """Registers between the input and the state of ``accum`` and ``scan`` (``params`` of the ``UnitSpec``): the part of
    a fold that does not depend on the state."""
    name = _hardware_name(params["function"], params["in_types"])
    if name in _GROUPED:
        return DOT_STAGES
    return TREE_STAGES if name in _TREES else 0


def compute_timing(kind: str, params: Mapping[str, Any]) -> Timing:
    """Timing of a ``map``, ``accum`` or ``scan`` unit from the ``params`` of its ``UnitSpec``.

    For ``accum`` the latency is from the closing element (or bare stop, or done) to the first beat that leaves; for
    ``scan`` from an element to the state after it.
    """
    name, first = _hardware_name(params["function"], params["in_types"]), params["in_types"][0]
    timing = function_timing(name, tile=params["tile"], rows_per_cycle=params["rows_per_cycle"],
                             k_per_cycle=params["k_per_cycle"], rows=int(params["out_type"].rows),
                             depth=int(getattr(first, "cols", 1)))   # a selector has none
    if kind == "map":
        return timing
    return Timing(contribution_stages(params) + 1, timing.interval)


def rows_operand(in_types, out_type) -> int:
    """Port whose count of valid rows is the result's: the first operand with as many rows as the result."""
    return next((i for i, type_ in enumerate(in_types) if getattr(type_, "rows", 1) == out_type.rows), 0)


def unit_timing(kind: str) -> Timing:
    """Timing of the units without a function. Of ``pack_rows`` and ``unpack_rows``: the interval of the beats that are
    more, tiles of one row; the latency from the beat that completes a block."""
    one = ("flatten", "flat_map", "promote", "streamify", "pack_rows", "unpack_rows")
    return Timing(1, 1) if kind in one else Timing(0, 1)


LOAD_EMPTY_LATENCY = 2
"""Cycles of a bare stop or done through the window of a load that is empty: slot, output register."""


def load_timing(memory: Any, element_bytes: int) -> Timing:
    """Timing of ``load``, ``random_load`` and ``input`` alone on a memory (``MemoryConfig``) of the ``simple`` model.

    latency: from the cycle in which an element's last request is taken to its offer at the output: the channel's queue,
    the memory's latency, ``interval`` for each further burst, the window, the output register; start-up comes on top.
    interval: of consecutive elements that lie on the same channels, as long as the window holds a latency's worth of
    them. Where an element leaves channels free, the next ones use these, down to one cycle an element.
    """
    bursts = memory.layout(element_bytes).bursts
    return Timing(1 + memory.latency + (bursts - 1) * memory.interval + 2, bursts * memory.interval)


def store_pending(memory: Any, element_bytes: int) -> int:
    """Elements that a ``random_store`` remembers until they are acknowledged, a power of two: as many as its channels'
    queues hold (two to a group of channels), and those on the way there and back, so that it need not wait."""
    return 1 << (2 * memory.layout(element_bytes).groups + 1).bit_length()
