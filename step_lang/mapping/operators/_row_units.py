"""What the mapping of the row operators checks."""

from __future__ import annotations

from step_lang.errors import HardwareTooSmall

from ..builder import Builder

__all__ = ["check_columns", "check_rows"]


def check_columns(builder: Builder, op) -> None:
    """Raise `HardwareTooSmall` for rows of more tiles than a bank holds."""
    most = builder.hw.row_columns
    if op.columns > most:
        raise HardwareTooSmall(f"tiles of a row: {op.columns} vs {most}", operator=op,
                               fix=f"set rows.columns to at least {op.columns} in the hardware configuration, a power "
                                   "of two")


def check_rows(builder: Builder, op) -> None:
    """Raise `HardwareTooSmall` for tiles of more rows than a physical tile has."""
    if op.rows > builder.hw.tile:
        raise HardwareTooSmall(f"rows: {op.rows} vs {builder.hw.tile}, those of a physical tile", operator=op,
                               fix="raise tile.size in the hardware configuration")
