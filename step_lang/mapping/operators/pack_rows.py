"""A pack_rows unit."""

from __future__ import annotations

from ..builder import Builder
from ..limits import check_columns, check_rows

KIND = "pack_rows"


def build(builder: Builder, op) -> None:
    check_columns(op, builder.hw)
    check_rows(op, builder.hw)
    unit = builder.unit("pack_rows", op.name, op, {"columns": builder.hw.row_columns},
                        {"n": op.columns, "rows": op.rows})
    builder.connect(unit, op.inputs, op.outputs)
