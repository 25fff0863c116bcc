"""zip: two streams become one of pairs."""

from __future__ import annotations

from typing import Any

from ..dims import Shape, format_shape, shapes_equal
from ..errors import ShapeMismatch
from ..operator import Operator
from ..stream import Stream
from ..tokens import TokenStream
from ..types import Tuple, Type
from ._tokens import require_same_stops

__all__ = ["Zip", "zip"]


class Zip(Operator):
    """See `zip`."""

    kind = "zip"

    def __init__(self, x: Stream, y: Stream, name: str | None):
        super().__init__([x, y], name)

    def infer(self) -> list[tuple[Type, Shape]]:
        x, y = self.inputs
        if not shapes_equal(x.shape, y.shape):
            raise ShapeMismatch(f"shapes of '{x.name}' and '{y.name}': {format_shape(x.shape)} vs "
                                f"{format_shape(y.shape)}", operator=self)
        return [(Tuple((x.type, y.type)), x.shape)]

    def interpret(self, ctx: Any, inputs: list[TokenStream]) -> list[TokenStream]:
        require_same_stops(inputs, [stream.name for stream in self.inputs])
        return [inputs[0].with_data(tuple(tokens.data for tokens in inputs))]


def zip(x: Stream, y: Stream, *, name: str | None = None) -> Stream:
    """A stream of tuples; shapes (`ShapeMismatch`) and run-time stops (`MisalignedStreams`) must agree."""
    return Zip(x, y, name).output
