"""Hashes of what a result depends on: equal contents, and only they, have equal hashes, in every process."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import hashlib
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import sympy

import step_lang
from step_lang.errors import BuildError
from step_lang.fn.base import Function
from step_lang.tokens import TokenStream

from ..dispatch import cache_directory
from .store import Store

__all__ = ["content_hash", "model_hash"]


def content_hash(*parts: Any) -> str:
    """Hash (64 hex digits) of numbers, texts, arrays, mappings, sequences, dataclasses, SymPy expressions and the
    language's functions. Mappings have no order. Raises `TypeError` for a value of another kind, whose text might
    differ from process to process."""
    digest = hashlib.sha256()
    for piece in _pieces(parts):
        digest.update(piece)
        digest.update(b"\0")
    return digest.hexdigest()


def _pieces(value: Any) -> Iterator[bytes]:
    if value is None or isinstance(value, (bool, int, float, str, np.bool_, np.number)):
        yield f"{type(value).__name__} {value!r}".encode()
    elif isinstance(value, np.ndarray):
        yield f"array {value.dtype} {value.shape}".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, np.dtype):
        yield f"dtype {value}".encode()
    elif isinstance(value, Mapping):
        yield f"mapping {len(value)}".encode()
        for key, member in sorted(value.items(), key=lambda pair: str(pair[0])):
            yield from _pieces(key)
            yield from _pieces(member)
    elif isinstance(value, (list, tuple)):
        yield f"sequence {len(value)}".encode()
        for member in value:
            yield from _pieces(member)
    elif isinstance(value, TokenStream):
        yield b"tokens"
        yield from _pieces((value.rank, value.stop, value.empty, value.data))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield f"{type(value).__module__}.{type(value).__qualname__}".encode()
        for field in dataclasses.fields(value):
            yield field.name.encode()
            yield from _pieces(getattr(value, field.name))
    elif isinstance(value, sympy.Basic):
        yield f"expression {value}".encode()
    elif isinstance(value, Function):
        yield f"function {value.name}".encode()
        yield from _pieces(value.params)
    else:
        raise TypeError(f"content of a {type(value).__name__} ({value!r}) is not known to be the same in every process")


@cache
def model_hash() -> str:
    """Hash of the sources of language and model, comments and docstrings left out: what is not in the content of a
    point but decides its numbers. Taken once a process, like the sources that it runs.

    Parsing them all takes most of a second, so a store remembers what their texts come to.
    """
    texts = _sources()
    versions = f"{sys.version_info[:2]} {np.__version__} {sympy.__version__}"
    as_they_are = content_hash("sources", versions, texts)
    store = Store(cache_directory() / "sources")
    known = store.get(as_they_are)
    if known is not None:
        return known["model"]
    found = content_hash("model", versions, {name: _code(text) for name, text in texts.items()})
    with contextlib.suppress(BuildError):
        store.put(as_they_are, {"model": found})
    return found


def _sources() -> dict[str, str]:
    """Texts by name: of language and model, their tests left out, and of the sweep what makes numbers and keys."""
    found = {}
    here = [Path(__file__).parent / name for name in ("evaluate.py", "content.py")]
    for root in (Path(__file__).parents[1], Path(step_lang.__file__).parent):
        for path in sorted(root.rglob("*.py")):
            inside = path.relative_to(root).parts
            if "tests" not in inside and (inside[0] != "sweep" or path in here):
                found["/".join((root.name, *inside))] = path.read_text()
    return found


def _code(text: str) -> str:
    """The syntax tree without docstrings and places."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [  # type: ignore[attr-defined]
                line for line in body
                if not (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)
                        and isinstance(line.value.value, str))]
    return ast.dump(tree)
