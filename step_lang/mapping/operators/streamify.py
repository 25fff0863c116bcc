"""A streamify unit at a read port of its buffers' scratchpads."""

from __future__ import annotations

from step_lang.errors import HardwareTooSmall

from ..builder import Builder
from ..registers import STREAMIFY_LOOPS
from ._references import ports

KIND = "streamify"


def build(builder: Builder, op) -> None:
    family = builder.family(op.inputs[0])
    config = {"n": op.pass_rank, "c": op.passes_rank, "repeat": op.repeat or 1,
              "affine": int(op.view_shape is not None)}
    shape = list(reversed(op.view_shape or ()))
    stride = list(reversed(op.view_stride or ()))
    if len(shape) > STREAMIFY_LOOPS:
        raise HardwareTooSmall(
            f"view of a buffer: {len(shape)} dimensions, those of its physical tiles included, vs {STREAMIFY_LOOPS} "
            "loops", operator=op, fix="give the view fewer dimensions")
    for k in range(STREAMIFY_LOOPS):
        config[f"count{k}"] = (shape[k] or 0) if k < len(shape) else 1   # 0: open
        config[f"stride{k}"] = (stride[k] if k < len(shape) else 0) & 0xFFFFFF
    unit = builder.unit("streamify", op.name, op, {
        "ports": ports(builder, family, family.readers.index(op)), "has_ref": op.ref is not None}, config)
    builder.connect(unit, op.inputs, op.outputs)
