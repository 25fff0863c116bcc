"""repeat: each element n times, in a new innermost dimension."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dims import Shape
from ..lengths import check_length
from ..operator import Operator
from ..stream import Stream
from ..tokens import TokenStream, data_take, pass_stops
from ..types import Type
from ._tokens import passes

__all__ = ["Repeat", "repeat"]


class Repeat(Operator):
    """See `repeat`."""

    kind = "repeat"
    category = "shape"

    def __init__(self, stream: Stream, n: int, name: str | None):
        self.n = n
        super().__init__([stream], name)

    def infer(self) -> list[tuple[Type, Shape]]:
        self.n = self.positive("n", self.n)
        return [(self.inputs[0].type, (*self.inputs[0].shape, self.n))]

    def interpret(self, ctx: Any, inputs: list[TokenStream]) -> list[TokenStream]:
        tokens = inputs[0]
        check_length(tokens.elements * self.n, f"{tokens.elements} elements {self.n} times")
        stop, empty, _ = passes(tokens, pass_stops((self.n,)), 1)
        indices = np.repeat(np.arange(tokens.elements), self.n)
        return [TokenStream(tokens.rank + 1, stop, empty, data_take(tokens.data, indices))]

    def describe(self) -> str:
        return f"n {self.n}"


def repeat(stream: Stream, n: int, *, name: str | None = None) -> Stream:
    """Each element ``n`` times: ``[..] -> [.., n]``. The last copy carries s + 1; a bare stop s becomes s + 1."""
    return Repeat(stream, n, name).output
