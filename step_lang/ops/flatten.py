"""flatten: dimensions min..max become one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dims import Shape, product
from ..errors import BadParameter
from ..operator import Operator
from ..stream import Stream
from ..tokens import TokenStream
from ..types import Type

__all__ = ["Flatten", "flatten"]


class Flatten(Operator):
    """See `flatten`. ``lo`` and ``hi`` are its ``min`` and ``max``."""

    kind = "flatten"
    category = "shape"

    def __init__(self, stream: Stream, lo: int, hi: int, name: str | None):
        self.lo, self.hi = lo, hi
        super().__init__([stream], name)

    def infer(self) -> list[tuple[Type, Shape]]:
        stream = self.inputs[0]
        self.lo, self.hi = self.positive("min", self.lo, 0), self.positive("max", self.hi, 0)
        if not self.lo < self.hi <= stream.rank:
            raise BadParameter(f"dimensions: {self.lo}..{self.hi} vs 0..{stream.rank}, min below max", operator=self)
        shape, top, bottom = stream.shape, stream.rank - self.hi, stream.rank - self.lo
        key = (self.kind, self.lo, self.hi, shape)
        merged = product(shape[top:bottom + 1], lambda: self.program.fresh_ragged(key))
        return [(stream.type, (*shape[:top], merged, *shape[bottom + 1:]))]

    def interpret(self, ctx: Any, inputs: list[TokenStream]) -> list[TokenStream]:
        tokens = inputs[0]
        s = tokens.stop.astype(np.int64)
        stop = np.where(s <= self.lo, s, np.where(s <= self.hi, self.lo, s - (self.hi - self.lo)))
        keep = ~(tokens.empty & (stop == 0))
        stop, empty = stop[keep], tokens.empty[keep]
        # An element whose own stop became 0 may now be the last of its vector, closed by a bare stop of an empty
        # vector after it. In fused form (SPEC section 1) that stop belongs to the element.
        late = np.flatnonzero(empty[1:] & ~empty[:-1] & (stop[:-1] == 0)) + 1
        stop[late - 1] = stop[late]
        return [TokenStream(self.outputs[0].rank, np.delete(stop, late), np.delete(empty, late), tokens.data)]

    def ready(self, inputs: Sequence[TokenStream], done: Sequence[bool]) -> list[int]:
        # The last element, if its stop vanished, may yet have to take the stop of a bare one behind it, unless every
        # stop becomes 0.
        tokens = inputs[0]
        elements = np.flatnonzero(~tokens.empty)
        if self.lo or self.hi == tokens.rank or not len(elements):
            return [len(tokens)]
        last = int(elements[-1])
        is_open = 0 < tokens.stop[last] <= self.hi and not (tokens.stop[last:] > self.hi).any()
        return [last if is_open else len(tokens)]

    def describe(self) -> str:
        return f"{self.lo}..{self.hi}"


def flatten(stream: Stream, min: int, max: int, *, name: str | None = None) -> Stream:
    """Merge dimensions min..max (innermost is 0) into one.

    Stops s <= min stay, min < s <= max become min, s > max become s - (max - min); a bare stop that becomes 0
    vanishes. The merged dimension is the product; ragged absorbs.
    """
    return Flatten(stream, min, max, name).output
