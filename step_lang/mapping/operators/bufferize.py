"""A bufferize unit and its scratchpad."""

from __future__ import annotations

from step_lang.errors import HardwareTooSmall

from ..builder import Builder
from ..references import most_uses, readers, routers, uses
from ..registers import USES_WIDTH
from ..scratchpads import check_buffer

KIND = "bufferize"


def build(builder: Builder, op) -> None:
    hw = builder.hw
    streamifies = readers(op.output)
    known = check_buffer(op, hw)
    if known is not None:
        size, pages, available = known
        if 2 * pages > available or hw.references < 2:
            builder.warn(op, f"its scratchpad holds one buffer of {size} tiles but not two: filling and reading "
                             "alternate")
    most = most_uses(op.output)
    if most >= 1 << USES_WIDTH:
        raise HardwareTooSmall(f"uses of a buffer: up to {most} vs {(1 << USES_WIDTH) - 1}", operator=op,
                               fix="read a buffer again by streamify(repeat=...) instead of by copies of its reference")
    scratchpad = builder.unit("scratchpad", f"{op.name}_scratchpad", op, {
        "frames": hw.scratchpad_frames, "page_frames": hw.page_frames, "references": hw.references,
        "readers": max(1, len(streamifies)), "routers": len(routers(op.output)),
        "payload": builder.payload(op.inputs[0])})
    builder.scratchpads[op.name] = scratchpad.index
    unit = builder.unit("bufferize", op.name, op, {"scratchpad": scratchpad.index},
                        {"rank": op.rank, "uses": uses(op.output), "hollow": int(op.hollow)})
    builder.connect(unit, op.inputs, op.outputs)
