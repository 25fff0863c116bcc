"""Values that the host gives for input streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import ops
from .program import Program
from .tokens import TokenStream

__all__ = ["host_tokens"]


def host_tokens(program: Program, values: Mapping[str, Any]) -> dict[str, TokenStream]:
    """The tokens of ``values``, nested lists or tokens by the name of an input stream of ``program``. Raises
    `TensorError`."""
    found = {}
    for name, given in values.items():
        operator = program.operator(name)
        assert isinstance(operator, ops.InputStream)
        found[name] = operator.tokens(given)
    return found
