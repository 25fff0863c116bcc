"""concat_cols: tiles joined along their cols (the paper's RetileCol)."""

from __future__ import annotations

from .concat import Concat

__all__ = ["ConcatCols"]


class ConcatCols(Concat):
    """Tiles joined along their cols."""

    name = "concat_cols"
    along = "cols"
    across = "rows"
