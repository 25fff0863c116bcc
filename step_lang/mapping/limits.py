"""What a unit of the hardware holds at most: states of an accumulator, rows and tiles of the row units."""

from __future__ import annotations

from typing import Any

from step_lang.dims import is_static
from step_lang.errors import HardwareTooSmall
from step_lang.hwconfig import HardwareConfig

from .registers import INNER_WIDTH

__all__ = ["check_columns", "check_rows", "check_states"]


def check_states(op: Any, hw: HardwareConfig) -> tuple[int, int, int]:
    """The dimensions of the states of an accum or scan of a lowered program (0: the run decides) and the entries that
    its accumulator has. Raises `HardwareTooSmall`."""
    sizes = [int(dim) if is_static(dim) else 0 for dim in op.inner_shape]
    n1, n0 = [1, 1, *sizes][-2:]
    # Whether there is a tensor of states is the program's structure; how large it is, a matter of registers.
    entries = hw.accumulator_entries if op.inner else 1
    least = max(n1, 1) * max(n0, 1)
    if least > entries:
        raise HardwareTooSmall(f"states: {n1 or 'at least 1'} x {n0} tiles vs {entries} entries of an accumulator",
                               operator=op,
                               fix=f"set accumulator.entries to at least {least} in the hardware configuration, or use "
                                   "smaller tiles")
    if max(n1, n0) >= 1 << INNER_WIDTH:
        raise HardwareTooSmall(f"states: {n1} x {n0} tiles vs at most {(1 << INNER_WIDTH) - 1} a dimension",
                               operator=op, fix="use smaller tiles")
    return n1, n0, entries


def check_columns(op: Any, hw: HardwareConfig) -> None:
    """Raise `HardwareTooSmall` for rows of more tiles than a bank of a row unit holds."""
    if op.columns > hw.row_columns:
        raise HardwareTooSmall(f"tiles of a row: {op.columns} vs {hw.row_columns}", operator=op,
                               fix=f"set rows.columns to at least {op.columns} in the hardware configuration, a power "
                                   "of two")


def check_rows(op: Any, hw: HardwareConfig) -> None:
    """Raise `HardwareTooSmall` for tiles of more rows than a physical tile has."""
    if op.rows > hw.tile:
        raise HardwareTooSmall(f"rows: {op.rows} vs {hw.tile}, those of a physical tile", operator=op,
                               fix="raise tile.size in the hardware configuration")
