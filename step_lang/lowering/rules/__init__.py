"""One rule per operator, one file each. Adding an operator is adding a file.

Each module offers

``KIND``
    the operator's kind;
``lower(ctx, op) -> None``
    builds the physical operators in ``ctx.out`` and calls ``ctx.define`` for every output of ``op``;
``begin(ctx, op) -> None``
    optional; called for all operators before any is lowered, for streams that are read before they are made;
``preferences(op) -> Preferences``
    optional; without it all streams of the operator share one order.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

__all__ = ["RULES"]

RULES: dict[str, ModuleType] = {}
"""Rule modules by operator kind."""

for _info in sorted(pkgutil.iter_modules(__path__), key=lambda info: info.name):
    if not _info.name.startswith("_"):
        _module = importlib.import_module(f"{__name__}.{_info.name}")
        RULES[_module.KIND] = _module
