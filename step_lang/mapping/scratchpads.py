"""Whether a scratchpad holds a buffer."""

from __future__ import annotations

import math

from step_lang.dims import is_static
from step_lang.errors import HardwareTooSmall
from step_lang.hwconfig import HardwareConfig
from step_lang.operator import Operator

__all__ = ["check_buffer"]


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
