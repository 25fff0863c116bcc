"""A partition unit, at a port of the scratchpad where it routes references."""

from __future__ import annotations

from step_lang.types import BufferRef

from ..builder import Builder
from ..references import bufferize_of, routers, uses

KIND = "partition"


def build(builder: Builder, op) -> None:
    params = {}
    if isinstance(op.inputs[0].type, BufferRef):
        bufferize = bufferize_of(op)
        params = {"scratchpad": builder.scratchpads[bufferize.name], "router": routers(bufferize.output).index(op),
                  "uses": tuple(uses(output) for output in op.outputs)}
    unit = builder.unit("partition", op.name, op, params, {"rank": op.rank})
    builder.connect(unit, op.inputs, op.outputs)
