"""map: a function of each element."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dims import Shape
from ..fn.base import Function
from ..stream import Stream
from ..tokens import Data, TokenStream, data_concat, data_empty, data_pack, data_take
from ..types import Tile, Type
from ._call import MAX_ELEMENTS_AT_ONCE, CallOperator, shape_classes
from ._tokens import require_same_stops

__all__ = ["Map", "map"]


class Map(CallOperator):
    """See `map`."""

    kind = "map"

    def infer(self) -> list[tuple[Type, Shape]]:
        types = self.check_call()
        self.check_arity(self.fn.arity)
        return [(self.own_sizes(self.fn.result_type(*types)), self.inputs[0].shape)]

    def interpret(self, ctx: Any, inputs: list[TokenStream]) -> list[TokenStream]:
        require_same_stops(inputs, [stream.name for stream in self.inputs])
        datas = [tokens.data for tokens in inputs]
        ctx.flops += self.measured_flops(datas)
        return [inputs[0].with_data(self._apply(ctx.numerics, datas, inputs[0].elements))]

    def _apply(self, numerics: Any, datas: list[Data], count: int) -> Data:
        if count == 0:
            return data_empty(self.output.type)
        if not all(isinstance(data, np.ndarray) for data in datas):
            results: list[np.ndarray] = [np.zeros(0)] * count
            for chosen in shape_classes(datas):
                for i, result in zip(chosen.tolist(), self._apply(numerics, [data_take(data, chosen) for data in datas],
                                                                  len(chosen))):
                    results[i] = result
            return data_pack(results)
        largest = max(int(np.prod(data.shape[1:])) for data in datas)
        if isinstance(self.output.type, Tile) and self.output.type.is_static:
            largest = max(largest, self.output.type.rows * self.output.type.cols)
        step = max(1, MAX_ELEMENTS_AT_ONCE // max(1, largest))
        return data_concat([self.fn.apply(numerics, *(data[i:i + step] for data in datas))
                            for i in range(0, count, step)])

    def onchip(self) -> Any:
        return self.fn.onchip(*(stream.type for stream in self.inputs), accum=False)


def map(fn: Function, *streams: Stream, compute_bw: int | None = None, name: str | None = None) -> Stream:
    """Apply ``fn`` to the elements of ``streams``, which have one shape; the result has it too. ``compute_bw`` in
    FLOPs/cycle (None: the hardware's default). Raises `ShapeMismatch`, `TypeMismatch`."""
    return Map(fn, streams, compute_bw, name).output
