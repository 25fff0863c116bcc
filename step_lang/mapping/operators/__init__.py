"""One file per operator: the units it becomes. Adding an operator is adding a file.

Each module offers ``KIND``, the operator's kind, and ``build(builder, op) -> None``, which adds units to the builder.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

__all__ = ["MAPPERS"]

MAPPERS: dict[str, ModuleType] = {}
"""Modules by operator kind."""

for _info in sorted(pkgutil.iter_modules(__path__), key=lambda info: info.name):
    if not _info.name.startswith("_"):
        _module = importlib.import_module(f"{__name__}.{_info.name}")
        MAPPERS[_module.KIND] = _module
