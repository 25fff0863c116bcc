"""A bufferize unit and its scratchpad."""

from __future__ import annotations

import math

from step_lang.dims import is_static
from step_lang.errors import HardwareTooSmall
from step_lang.operator import Operator
from step_lang.stream import Stream

from ..builder import Builder

KIND = "bufferize"


def readers(stream: Stream) -> list[Operator]:
    """Streamifies that get the references of ``stream``, in program order of their streams."""
    found: list[Operator] = []
    for op in stream.consumers:
        if op.kind == "streamify":
            if op.inputs[0] is stream and op not in found:
                found.append(op)
            continue    # as a pass request it ends there
        for output in op.outputs:
            found += [reader for reader in readers(output) if reader not in found]
    return found


def build(builder: Builder, op) -> None:
    hw = builder.hw
    streamifies = readers(op.output)
    shape = op.output.type.shape
    if all(is_static(dim) for dim in shape):
        size = math.prod(shape)
        pages = -(-size // hw.page_frames)
        available = hw.scratchpad_frames // hw.page_frames
        if pages > available:
            raise HardwareTooSmall(
                f"buffer of {size} tiles: {pages} pages of {hw.page_frames} vs {available} in its scratchpad",
                operator=op, fix=f"set scratchpad.frames to at least {pages * hw.page_frames} in the hardware "
                                 "configuration, or buffer less")
        if 2 * pages > available or hw.references < 2:
            builder.warn(op, f"its scratchpad holds one buffer of {size} tiles but not two: filling and reading "
                             "alternate")
    scratchpad = builder.unit("scratchpad", f"{op.name}_scratchpad", op, {
        "frames": hw.scratchpad_frames, "page_frames": hw.page_frames, "references": hw.references,
        "readers": max(1, len(streamifies)), "payload": builder.payload(op.inputs[0])})
    builder.scratchpads[op.name] = scratchpad.index
    unit = builder.unit("bufferize", op.name, op, {"scratchpad": scratchpad.index},
                        {"rank": op.rank, "uses": max(1, len(streamifies))})
    builder.connect(unit, op.inputs, op.outputs)
