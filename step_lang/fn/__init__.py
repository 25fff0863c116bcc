"""The function library: what `map`, `accum` and `scan` apply.

One file a function; a file is found by being here. Each is used by name, ``fn.matmul(transpose_b=True)`` or
``fn.get("matmul", transpose_b=True)``; both raise `UnknownFunction` with the known names for one that does not exist.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from step_lang.errors import BadParameter, UnknownFunction

from .base import Function

__all__ = ["Function", "get", "names"]

_registry: dict[str, type[Function]] = {}


def _discover() -> None:
    for found in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
        module = importlib.import_module(f"{__name__}.{found.name}")
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, Function) and value.__module__ == module.__name__:
                if "name" in vars(value):  # bases shared by several functions have none
                    _registry[value.name] = value
    # After its import a submodule is an attribute of this package; the function takes its place (`fn.matmul` is the
    # class, the module stays importable).
    globals().update(_registry)


def names() -> list[str]:
    """Names of all functions, sorted."""
    return sorted(_registry)


def get(name: str, **params: Any) -> Function:
    """The function called ``name`` with ``params``. Raises `UnknownFunction`, or `BadParameter` for its parameters."""
    if name not in _registry:
        raise UnknownFunction(f"function {name!r} vs the known ones", fix=f"use one of {', '.join(names())}")
    try:
        return _registry[name](**params)
    except TypeError as error:
        raise BadParameter(f"function {name!r}: {error}") from None


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise UnknownFunction(f"function {name!r} vs the known ones", fix=f"use one of {', '.join(names())}")


_discover()
