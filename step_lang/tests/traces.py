"""Traces of the paper's artifact, which are not part of the project: ``STEP_HW_DATA`` names a directory of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

__all__ = ["trace_path"]


def trace_path(name: str) -> str:
    """Path of ``traces/<name>``. Skips the test where there is none."""
    data = os.environ.get("STEP_HW_DATA")
    if not data:
        pytest.skip(f"STEP_HW_DATA names no directory with traces/{name} in it")
    path = Path(data) / "traces" / name
    if not path.exists():
        pytest.skip(f"no trace {path}")
    return str(path)
