"""A bufferize unit and its scratchpad."""

from __future__ import annotations

from step_lang.errors import HardwareTooSmall

from ..builder import Builder
from ..references import Family, most_uses, uses
from ..registers import USES_WIDTH, WIDE_USES_WIDTH
from ..scratchpads import check_buffer

KIND = "bufferize"


def build(builder: Builder, op) -> None:
    hw = builder.hw
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
    family = builder.family(op.output)
    for member in family.bufferizes:   # who reads or routes references of one has a port at the scratchpads of all
        if member.name not in builder.scratchpads:
            builder.scratchpads[member.name] = _scratchpad(builder, member, family)
    params = {"scratchpad": builder.scratchpads[op.name], "owner": family.bufferizes.index(op),
              "owners": len(family.bufferizes)}
    unit = builder.unit("bufferize", op.name, op, params,
                        {"rank": op.rank, "uses": uses(op.output), "hollow": int(op.hollow)})
    builder.connect(unit, op.inputs, op.outputs)


def _scratchpad(builder: Builder, op, family: Family) -> int:
    hw = builder.hw
    return builder.unit("scratchpad", f"{op.name}_scratchpad", op, {
        "frames": hw.scratchpad_frames, "page_frames": hw.page_frames, "references": hw.references,
        "readers": max(1, len(family.readers)), "routers": len(family.routers),
        "uses_bits": WIDE_USES_WIDTH if family.copies else USES_WIDTH,
        "payload": builder.payload(op.inputs[0])}).index
