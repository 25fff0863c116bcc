"""A feedback takes no unit: links lead from what is fed back to what reads it."""

from __future__ import annotations

from ..builder import Builder

KIND = "feedback"


def build(builder: Builder, op) -> None:
    builder.alias(op.output, op.inputs[0])
