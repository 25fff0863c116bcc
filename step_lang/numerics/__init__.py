"""Bit-level definitions of everything the hardware computes."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Numerics"]


@dataclass(frozen=True)
class Numerics:
    """Numeric parameters of the hardware. ``group``: products summed exactly before one rounding (k_per_cycle)."""

    group: int = 16
