"""A scan unit."""

from __future__ import annotations

from ..builder import Builder
from ._compute import build_fold

KIND = "scan"


def build(builder: Builder, op) -> None:
    build_fold(builder, op, "scan")
