"""An accum unit."""

from __future__ import annotations

from ..builder import Builder
from ._compute import build_fold

KIND = "accum"


def build(builder: Builder, op) -> None:
    build_fold(builder, op, "accum")
