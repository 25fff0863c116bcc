"""Operators, one file each. Adding an operator is adding a file: every module here is imported, and what its
``__all__`` lists (a class and the function that applies it) becomes public. ``CLASSES`` maps kinds to classes.

Names that are also Python builtins (`map`, `zip`) are meant to be used as ``ops.map``.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from ..operator import Operator

CLASSES: dict[str, type[Operator]] = {}
"""Operator classes by kind, sorted by kind."""

__all__ = ["CLASSES"]

for _info in sorted(pkgutil.iter_modules(__path__), key=lambda info: info.name):
    if _info.name.startswith("_"):
        continue
    _module = importlib.import_module(f"{__name__}.{_info.name}")
    for _name in _module.__all__:
        _value = getattr(_module, _name)
        if isinstance(_value, type) and issubclass(_value, Operator):
            CLASSES[_value.kind] = _value
    # The module itself is an attribute of the same name until the function replaces it.
    for _name in _module.__all__:
        globals()[_name] = getattr(_module, _name)
        __all__.append(_name)


def __getattr__(name: str) -> Any:
    # Names are set above, from the files; this tells type checkers that there are more than they see.
    raise AttributeError(f"no operator {name!r}; there are {', '.join(sorted(CLASSES))}")
