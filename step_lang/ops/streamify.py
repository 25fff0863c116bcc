"""streamify: whole passes over buffers, one for each reference element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dims import Dim, Shape, format_shape, is_static, shapes_equal
from ..errors import BadParameter, MisalignedStreams, ShapeMismatch, TypeMismatch, ViewOutOfRange
from ..lengths import check_length
from ..operator import Operator
from ..stream import Stream
from ..tokens import TokenStream, data_concat, data_empty, data_take
from ..types import BufferRef, Type
from ._tokens import show_beat
from ._views import check_view, open_view, view_pass

__all__ = ["Streamify", "streamify"]


class Streamify(Operator):
    """See `streamify`. ``passes_rank`` is c; ``view_shape`` is None where a pass is the buffer in order, and has a None
    in it for an open dimension."""

    kind = "streamify"
    category = "memory"

    def __init__(self, buffers: Stream, ref: Stream | None, repeat: int | None, shape: Any, stride: Any,
                 name: str | None):
        self.repeat: Any = repeat
        self.view_shape, self.view_stride = shape, stride
        super().__init__([buffers] if ref is None else [buffers, ref], name)

    @property
    def ref(self) -> Stream | None:
        return self.inputs[1] if len(self.inputs) > 1 else None

    def infer(self) -> list[tuple[Type, Shape]]:
        buffers, type_ = self.inputs[0], self.inputs[0].type
        if not isinstance(type_, BufferRef):
            raise TypeMismatch(f"buffers: {type_} vs BufferRef", operator=self, fix="bufferize the stream first")
        if (self.ref is None) == (self.repeat is None):
            raise BadParameter(f"passes: ref {'given' if self.ref else 'missing'} vs repeat={self.repeat!r}",
                               operator=self, fix="give exactly one of ref and repeat")
        if self.ref is None:
            self.repeat = self.positive("repeat", self.repeat)
            self.passes_rank = 1
            outer: Shape = (*buffers.shape, self.repeat)
        else:
            self.passes_rank = self.ref.rank - buffers.rank
            outer = self.ref.shape
            if self.passes_rank < 0 or not shapes_equal(outer[:len(buffers.shape)], buffers.shape):
                raise ShapeMismatch(f"outer dimensions of ref '{self.ref.name}': {format_shape(outer)} vs buffers "
                                    f"{format_shape(buffers.shape)}", operator=self,
                                    fix="the reference's outer dimensions must be the buffers'")
        if self.view_shape is None:
            if self.view_stride is not None:
                raise BadParameter(f"stride {self.view_stride!r} without a shape", operator=self, fix="give both")
            return [(type_.tile, outer + type_.shape)]
        if isinstance(self.view_shape, (list, tuple)) and None in self.view_shape:
            return [(type_.tile, outer + self._open_shape(type_))]
        if not all(is_static(dim) for dim in type_.shape):
            raise ShapeMismatch(f"affine view of a buffer: shape {format_shape(type_.shape)} vs static dimensions",
                                operator=self, fix="leave one dimension of the view open (None) where only the "
                                                   "buffer's outermost is not static")
        size = int(np.prod(type_.shape))
        self.view_shape, self.view_stride = check_view(self, self.view_shape, self.view_stride, size, "buffer elements")
        if not self.view_shape:
            raise BadParameter("view shape: () vs at least one dimension", operator=self)
        return [(type_.tile, outer + self.view_shape)]

    def _open_shape(self, type_: BufferRef) -> Shape:
        """Output dimensions of a view with an open dimension: that one is the buffer's outermost where it visits each
        of its positions once, else ragged."""
        if not all(is_static(dim) for dim in type_.shape[1:]):
            raise ShapeMismatch(f"open view of a buffer: shape {format_shape(type_.shape)} vs static dimensions below "
                                "the outermost", operator=self)
        self.view_shape, self.view_stride = open_view(self, self.view_shape, self.view_stride)
        row = int(np.prod(type_.shape[1:], dtype=np.int64))
        at = self.view_shape.index(None)
        furthest = sum(max(0, (n - 1) * k) for n, k in zip(self.view_shape[:at], self.view_stride))
        if self.view_stride[at] == row and furthest < row:
            dim: Dim = type_.shape[0]
        else:
            dim = self.program.fresh_ragged((self.kind, self.inputs[0].name, self.view_shape, self.view_stride))
        return tuple(dim if n is None else n for n in self.view_shape)

    @property
    def pass_rank(self) -> int:
        """n: dimensions of one pass."""
        return self.output.rank + 1 - (self.ref.rank + 1 if self.ref else self.inputs[0].rank + 2)

    def interpret(self, ctx: Any, inputs: list[TokenStream]) -> list[TokenStream]:
        buffers = inputs[0]
        if self.ref is not None:
            ref_stop, ref_empty = inputs[1].stop.tolist(), inputs[1].empty.tolist()
        else:  # every buffer's reference, repeated
            kept = sum(map(len, buffers.data)) if self.view_shape is None else buffers.elements
            check_length(kept * self.repeat, f"buffers of {kept} elements {self.repeat} times")
            counts = np.where(buffers.empty, 1, self.repeat)
            last = np.cumsum(counts) - 1
            stops = np.zeros(int(counts.sum()), dtype=np.int64)
            stops[last] = buffers.stop.astype(np.int64) + 1
            ref_stop, ref_empty = stops.tolist(), np.repeat(buffers.empty, counts).tolist()
        n, c = self.pass_rank, self.passes_rank
        starts = np.concatenate([[0], np.cumsum([len(buffer) for buffer in buffers.data])]).astype(np.int64)
        views: dict[int, tuple[np.ndarray, np.ndarray]] = {}   # by the buffer's length

        head = 0  # the buffers' next beat
        buffer_stop, buffer_empty = buffers.stop.tolist(), buffers.empty.tolist()
        index_of = (np.cumsum(~buffers.empty) - 1).tolist()
        stop_parts: list[np.ndarray] = []
        empty_parts: list[np.ndarray] = []
        index_parts: list[np.ndarray] = []
        made = 0
        for i, (s, bare) in enumerate(zip(ref_stop, ref_empty)):
            if not bare or s >= c:
                if head >= len(buffer_stop) or (buffer_empty[head] and not bare):
                    raise MisalignedStreams(f"ref beat {i} ({'bare ' if bare else ''}stop {s}) vs "
                                            f"{show_beat(buffers, head)} on '{self.inputs[0].name}'")
            if bare:
                stop_parts.append(np.array([s + n]))
                empty_parts.append(np.ones(1, dtype=bool))
            else:
                element = index_of[head]
                buffer = buffers.data[element]
                if len(buffer) == 0:
                    stop_parts.append(np.array([s + n]))
                    empty_parts.append(np.ones(1, dtype=bool))
                else:
                    if len(buffer) not in views and self.view_shape is not None:
                        views[len(buffer)] = view_pass(self.view_shape, self.view_stride, len(buffer))
                    view, stops = views.get(len(buffer)) or (np.arange(len(buffer)), buffer.stop)
                    if int(view.max()) >= len(buffer):
                        raise ViewOutOfRange(f"view index {int(view.max())} vs a buffer of {len(buffer)} elements")
                    made += len(view)
                    check_length(made, f"passes over buffers, {i + 1} of {len(ref_stop)}")
                    stops = np.array(stops, dtype=np.int64)
                    stops[-1] = s + n
                    stop_parts.append(stops)
                    empty_parts.append(np.zeros(len(stops), dtype=bool))
                    index_parts.append(starts[element] + view)
            if s >= c:
                if buffer_stop[head] != s - c:
                    raise MisalignedStreams(f"ref beat {i} of stop {s} vs {show_beat(buffers, head)} on "
                                            f"'{self.inputs[0].name}', which needs stop {buffer_stop[head] + c}")
                head += 1
        if head != len(buffer_stop):
            raise MisalignedStreams(f"done on the reference vs {show_beat(buffers, head)} on '{self.inputs[0].name}'")
        pool = data_concat([b.data for b in buffers.data]) if buffers.data else data_empty(self.output.type)
        indices = np.concatenate(index_parts) if index_parts else np.zeros(0, dtype=np.int64)
        return [TokenStream(self.output.rank, np.concatenate(stop_parts) if stop_parts else [],
                            np.concatenate(empty_parts) if empty_parts else [], data_take(pool, indices))]

    def ready(self, inputs: Sequence[TokenStream], done: Sequence[bool]) -> list[int]:
        if self.ref is None:
            return [len(inputs[0])]
        ends = np.flatnonzero(inputs[1].stop >= self.passes_rank)[:len(inputs[0])]
        return [len(ends), int(ends[-1]) + 1 if len(ends) else 0]

    def describe(self) -> str:
        return f"repeat {self.repeat}" if self.ref is None else "by reference"


def streamify(buffers: Stream, ref: Stream | None = None, repeat: int | None = None,
              shape: Sequence[int | None] | None = None, stride: Sequence[int] | None = None, *,
              name: str | None = None) -> Stream:
    """Read buffers: ``[D_b..D_0]`` against ref ``[D_b..D_0, D'_{c-1}..D'_0]`` -> ref's dimensions, then the buffer's.

    Parameters
    ----------
    ref : one whole pass for each element; a stop s >= c frees the buffer. A bare stop passes, raised by the buffer's
        rank n, and frees too.
    repeat : the static form, ``repeat`` passes over each buffer (c = 1). Exactly one of the two is given.
    shape, stride : an affine view of a static buffer, in elements, outermost first. One size may be None, an open
        dimension: it goes on while the index at which it stands is inside the buffer, of which then the outermost
        dimension need not be static. ``shape=(K, None), stride=(1, K)`` reads rows of K elements by columns.

    An empty buffer's pass is a bare stop n + s. Raises `TypeMismatch`, `ShapeMismatch`, `ViewOutOfRange`.
    """
    return Streamify(buffers, ref, repeat, shape, stride, name).output
