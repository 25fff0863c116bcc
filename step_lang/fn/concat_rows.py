"""concat_rows: tiles joined along their rows (the paper's RetileRow)."""

from __future__ import annotations

from .concat import Concat

__all__ = ["ConcatRows"]


class ConcatRows(Concat):
    """Tiles joined along their rows."""

    name = "concat_rows"
    along = "rows"
    across = "cols"
