"""Scratchpads, one for each bufferize: whether one holds a buffer, and counts its uses."""

from __future__ import annotations

import math

from step_lang.dims import is_static
from step_lang.errors import HardwareTooSmall
from step_lang.hwconfig import HardwareConfig
from step_lang.operator import Operator
from step_lang.types import BufferRef
from step_lang.unitgraph import UnitGraph

from .registers import USES_WIDTH, WIDE_USES_WIDTH

__all__ = ["check_buffer", "check_uses"]


def check_buffer(op: Operator, hw: HardwareConfig) -> tuple[int, int, int] | None:
    """Tiles and pages of a buffer of the bufferize ``op`` of a lowered program, and the pages that its scratchpad has;
    None where the run decides how large it is. Raises `HardwareTooSmall`."""
    shape = op.output.type.shape  # type: ignore[union-attr]
    if not all(is_static(dim) for dim in shape):
        return None
    size = math.prod(shape)
    pages = -(-size // hw.page_frames)
    available = hw.scratchpad_frames // hw.page_frames
    if pages > available:
        raise HardwareTooSmall(
            f"buffer of {size} tiles: {pages} pages of {hw.page_frames} vs {available} in its scratchpad", operator=op,
            fix=f"set scratchpad.frames to at least {pages * hw.page_frames} in the hardware configuration, or buffer "
                "less")
    return size, pages, available


def check_uses(graph: UnitGraph) -> None:
    """Where references are copied as often as a stream says, that the links of ``graph`` cannot hold more of them than
    a scratchpad can count. Raises `HardwareTooSmall`."""
    wide = [unit for unit in graph.units if unit.kind == "scratchpad" and unit.params["uses_bits"] == WIDE_USES_WIDTH]
    if not wide:
        return
    held = sum(link.depth + 2 for link in graph.links if isinstance(link.payload.type, BufferRef))
    uses = held * ((1 << USES_WIDTH) - 1)
    if uses >= 1 << WIDE_USES_WIDTH:
        raise HardwareTooSmall(
            f"uses of a buffer of '{wide[0].name}': up to {uses}, those of {held} references in links, vs "
            f"{(1 << WIDE_USES_WIDTH) - 1}", fix="make the links of references shorter")
