"""What map, accum and scan share: a function applied to elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy

from ..dims import Ragged, format_shape, shapes_equal
from ..errors import BadParameter, ShapeMismatch, UnknownFunction
from ..fn.base import Function
from ..operator import Operator
from ..stream import Stream
from ..tokens import Data, data_take, data_type
from ..types import Tile, Type

__all__ = ["MAX_ELEMENTS_AT_ONCE", "CallOperator", "shape_classes"]

MAX_ELEMENTS_AT_ONCE = 1 << 22
"""Tile elements given to a function at once, so that intermediate results stay in a few hundred megabytes."""


class CallOperator(Operator):
    """An operator that applies ``fn`` to elements of streams of one shape; ``compute_bw`` in FLOPs/cycle or None."""

    category = "compute"
    uses_compute = True

    def __init__(self, fn: Function, streams: Sequence[Stream], compute_bw: Any, name: str | None):
        self.fn = fn
        self.compute_bw = compute_bw
        super().__init__(streams, name)

    def check_call(self) -> list[Type]:
        """Check function, number of streams, shapes and ``compute_bw``; return the streams' types."""
        if not isinstance(self.fn, Function):
            raise UnknownFunction(f"function: {self.fn!r} vs a function of step_lang.fn", operator=self,
                                  fix="use one of step_lang.fn, such as fn.matmul()")
        if self.compute_bw is not None:
            self.positive("compute_bw", self.compute_bw)
        first = self.inputs[0]
        for stream in self.inputs[1:]:
            if not shapes_equal(stream.shape, first.shape):
                raise ShapeMismatch(f"shapes of '{first.name}' and '{stream.name}': {format_shape(first.shape)} vs "
                                    f"{format_shape(stream.shape)}", operator=self,
                                    fix="bring both to one shape (expand, repeat, flatten) or assume one")
        return [stream.type for stream in self.inputs]

    def check_arity(self, arity: int) -> None:
        if len(self.inputs) != arity:
            raise BadParameter(f"function {self.fn!r} takes {arity} streams vs {len(self.inputs)} given",
                               operator=self)

    def own_sizes(self, type_: Type) -> Type:
        """``type_`` as this operator's: a ragged size of tiles that none of its inputs has, which the function gave, is
        another one for every operator."""
        if not isinstance(type_, Tile):
            return type_
        known = {dim for stream in self.inputs if isinstance(stream.type, Tile)
                 for dim in (stream.type.rows, stream.type.cols)}
        rows, cols = (
            self.program.fresh_ragged((self.kind, self.name, label)) if isinstance(size, Ragged) and size not in known
            else size for label, size in (("rows", type_.rows), ("cols", type_.cols)))
        return Tile(rows, cols, type_.dtype)

    def per_call_flops(self) -> Any:
        return sympy.sympify(self.fn.flops(*(stream.type for stream in self.inputs)))

    def flops(self) -> Any:
        return self.inputs[0].elements * self.per_call_flops()

    def measured_flops(self, datas: Sequence[Data]) -> int:
        """FLOPs of applying the function to all elements of ``datas``, from the tiles' actual sizes."""
        if all(isinstance(data, np.ndarray) for data in datas):
            if not all(data.size for data in datas):  # no element, or tiles without rows or columns
                return 0
            types = [data_type(data, stream.type) for data, stream in zip(datas, self.inputs)]
            return len(datas[0]) * int(self.fn.flops(*types))
        return sum(self.measured_flops([data_take(data, chosen) for data in datas]) for chosen in shape_classes(datas))

    def describe(self) -> str:
        return str(self.fn)


def shape_classes(datas: Sequence[Data]) -> list[np.ndarray]:
    """Elements sorted by the shapes of their tiles: arrays of element numbers, ascending, the elements of each alike in
    every one of ``datas`` (arrays, or lists of tiles)."""
    classes: dict[tuple, list[int]] = {}
    for i, tiles in enumerate(zip(*datas, strict=True)):
        classes.setdefault(tuple(tile.shape for tile in tiles), []).append(i)
    return [np.array(chosen, dtype=np.intp) for chosen in classes.values()]
