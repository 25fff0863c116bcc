"""Registers of an affine view of an off-chip tensor."""

from __future__ import annotations

from collections.abc import Sequence

from step_lang.errors import HardwareTooSmall
from step_lang.operator import Operator
from step_lang.unitgraph import TensorPlacement

from ..registers import AFFINE_LOOPS

__all__ = ["view_registers"]


def view_registers(op: Operator, place: TensorPlacement, shape: Sequence[int], stride: Sequence[int],
                   limit: int | None = None) -> dict[str, int]:
    """``base``, ``limit``, ``dims`` and all loops, loop 0 innermost; unused loops count 1 with stride 0."""
    if len(shape) > AFFINE_LOOPS:
        raise HardwareTooSmall(
            f"view of tensor '{place.name}': {len(shape)} dimensions, those of its physical tiles included, vs "
            f"{AFFINE_LOOPS} loops of an address generator", operator=op, fix="give the view fewer dimensions")
    size = place.grid[0] * place.grid[1]
    config = {"base": place.base, "limit": size if limit is None else limit, "dims": len(shape)}
    sizes = list(reversed(shape)) + [1] * (AFFINE_LOOPS - len(shape))
    steps = list(reversed(stride)) + [0] * (AFFINE_LOOPS - len(shape))
    for k in range(AFFINE_LOOPS):
        config[f"count{k}"] = sizes[k]
        config[f"stride{k}"] = steps[k] & 0xFFFFFFFF
    return config
