"""A trim_rows unit."""

from __future__ import annotations

from ..builder import Builder
from ..limits import check_rows

KIND = "trim_rows"


def build(builder: Builder, op) -> None:
    check_rows(op, builder.hw)
    unit = builder.unit("trim_rows", op.name, op, {}, {"rows": op.rows, "total": op.total})
    builder.connect(unit, op.inputs, op.outputs)
