"""An unpack_rows unit."""

from __future__ import annotations

from ..builder import Builder
from ..limits import check_columns

KIND = "unpack_rows"


def build(builder: Builder, op) -> None:
    check_columns(op, builder.hw)
    unit = builder.unit("unpack_rows", op.name, op, {"columns": builder.hw.row_columns}, {"n": op.columns})
    builder.connect(unit, op.inputs, op.outputs)
