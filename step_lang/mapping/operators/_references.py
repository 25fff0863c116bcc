"""Ports at the scratchpads of a family of bufferizes."""

from __future__ import annotations

from typing import Any

from step_lang.operator import Operator
from step_lang.types import BufferRef

from ..builder import Builder
from ..references import Family, uses

__all__ = ["ports", "routes"]


def ports(builder: Builder, family: Family, number: int) -> tuple[tuple[int, int], ...]:
    """(unit index, port) of each of the family's scratchpads, for its reader or router of that number."""
    return tuple((builder.scratchpads[bufferize.name], number) for bufferize in family.bufferizes)


def routes(builder: Builder, op: Operator) -> dict[str, Any]:
    """Parameters of a router: none where it handles no references."""
    if not isinstance(op.inputs[0].type, BufferRef):
        return {}
    family = builder.family(op.inputs[0])
    return {"ports": ports(builder, family, family.routers.index(op)),
            "uses": tuple(uses(output) for output in op.outputs)}
