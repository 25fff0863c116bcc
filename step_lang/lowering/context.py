"""The state of one lowering: the physical program so far, and where each logical stream lies in it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from step_lang import fn, ops
from step_lang.dims import is_static
from step_lang.errors import ShapeMismatch, StepError, TileDoesNotDivide
from step_lang.host_streams import host_tokens
from step_lang.interpreter import check_host_shapes, check_inputs
from step_lang.operator import Operator
from step_lang.program import Program, Tensor
from step_lang.stream import Stream
from step_lang.tokens import TokenStream
from step_lang.types import Tile, Tuple

from .layout import (
    Layout,
    Order,
    Referenced,
    RowTiled,
    Tiled,
    layout_of,
    lower_tokens,
    physical_type,
    raise_tokens,
)

__all__ = ["LoweredProgram", "Lowering", "Placed", "may_be_bare"]


@dataclass(frozen=True)
class Placed:
    """A physical stream, and how its elements make the logical ones."""

    stream: Stream
    layout: Layout

    @property
    def order(self) -> Order | None:
        layout = self.layout.content if isinstance(self.layout, Referenced) else self.layout
        return layout.order if isinstance(layout, Tiled) else None


@dataclass
class LoweredProgram:
    """A program over T x T tiles.

    Attributes
    ----------
    program : the physical program; its tensors have the names and contents of the logical ones.
    logical : the program it came from.
    tile : T.
    placed : logical stream name to its physical streams, the operator's own result first, then re-laid copies.
    owners : physical operator's name to that of the logical operator for which it was made.
    """

    program: Program
    logical: Program
    tile: int
    placed: Mapping[str, list[Placed]] = field(default_factory=dict)
    owners: Mapping[str, str] = field(default_factory=dict)

    def physical_name(self, name: str) -> str:
        """Name of the physical stream that the logical stream ``name`` became."""
        return self._placed(name)[0].stream.name

    def logical_view(self, name: str, tokens: TokenStream) -> TokenStream:
        """The logical stream ``name`` from the tokens of its physical stream."""
        return raise_tokens(tokens, self._placed(name)[0].layout)

    def logical_streams(self, streams: Mapping[str, TokenStream]) -> dict[str, list[TokenStream]]:
        """Every logical stream, once for each physical stream it became, from all physical streams by name."""
        return {name: [raise_tokens(streams[p.stream.name], p.layout) for p in placed]
                for name, placed in self.placed.items()}

    def physical_inputs(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Values of the physical program's input streams from those of the logical one's."""
        check_inputs(self.logical, inputs)
        given = host_tokens(self.logical, inputs)
        check_host_shapes(self.logical, given)
        found = {}
        for name, tokens in given.items():
            placed = self._placed(name)[0]
            found[placed.stream.name] = lower_tokens(tokens, placed.layout)
        return found

    def _placed(self, name: str) -> list[Placed]:
        if name not in self.placed:
            raise StepError(f"stream '{name}' vs the program's {', '.join(self.placed)}", source=self.logical.source)
        return self.placed[name]


def may_be_bare(stream: Stream, inner: int = 0) -> bool:
    """Whether a bare stop can occur on the stream: only where a dimension below the outermost may be 0. ``inner``
    dimensions are known never to be."""
    return any(not is_static(dim) or dim == 0 for dim in stream.shape[1:len(stream.shape) - inner])


class Lowering:
    """What the rules work with."""

    def __init__(self, logical: Program, tile: int, orders: Mapping[str, Order], holds: Collection[tuple[str, int]]):
        self.logical = logical
        self.tile = tile
        self.orders = orders
        self.holds = holds
        self.out = Program(logical.name)
        self.out.source = logical.source
        # Ragged symbols of the logical program keep their meaning; new ones must not meet them.
        self.out._ragged = logical._ragged
        self.out._names |= {operator.name for operator in logical.operators}
        self.tensors: dict[str, Tensor] = {}
        for tensor in logical.tensors.values():
            with self.out.sourced(tensor.source):
                self.tensors[tensor.name] = self.out.tensor(tensor.name, tensor.shape, tensor.dtype)
        self.placed: dict[str, list[Placed]] = {}
        self._derived: dict[tuple, Stream] = {}

    # Names

    def own(self, operator: Operator) -> str:
        """The logical operator's name, for the physical operator that makes its result."""
        self.out._names.discard(operator.name)
        return operator.name

    def name(self, base: str) -> str:
        """A name that starts with ``base`` and is not taken."""
        name, number = base, 2
        while name in self.out._names:
            name, number = f"{base}_{number}", number + 1
        return name

    # Logical streams

    def order(self, stream: Stream) -> Order:
        """The order in which the logical stream should be laid out."""
        return self.orders[stream.name]

    def layout(self, stream: Stream, order: Order | None = None) -> Layout:
        """Layout of the logical stream's elements, in ``order`` or the one chosen for it."""
        return layout_of(stream.type, self.tile, order or self.order(stream))

    def stored_type(self, operator: Operator, type_: Any) -> Any:
        """Physical type of elements that lie off-chip, where all tiles are whole. Raises `TileDoesNotDivide`."""
        physical = self.physical_type(type_)
        for part in physical.members if isinstance(physical, Tuple) else (physical,):
            if isinstance(part, Tile) and part.rows not in (1, self.tile):
                raise TileDoesNotDivide(
                    f"{type_} off-chip: physical tile T = {self.tile} does not divide its {part.rows} rows",
                    operator=operator, fix=f"use a tile with a multiple of {self.tile} rows, or a smaller tile.size in "
                                           "the hardware configuration")
        return physical

    def physical_type(self, type_: Any) -> Any:
        return physical_type(type_, self.tile)

    def define(self, logical: Stream, physical: Stream, layout: Layout) -> None:
        """``physical`` is what the logical stream became. Its outer dimensions are the logical ones, by the same names:
        what the physical operators called them says less (two ragged dimensions that are one)."""
        outer = len(logical.shape)
        if logical.shape != logical.inferred_shape:
            physical.assume(tuple(logical.shape) + layout.dims)
        elif not physical.consumers and physical.shape[:outer] != logical.shape:
            physical.assume(tuple(logical.shape) + physical.shape[outer:])
        if not logical.consumers:   # one that may be left unused
            physical.optional = True
        self.placed.setdefault(logical.name, []).append(Placed(physical, layout))

    def get(self, logical: Stream, order: Order | None = None) -> Placed:
        """The physical stream of a logical one in ``order`` (any where None), re-laid where it has to be."""
        variants = self.placed[logical.name]
        for placed in variants:
            if order is None or placed.order in (order, None):
                return placed
        source = variants[0]
        if isinstance(source.layout, Referenced):
            raise StepError(f"buffer of stream '{logical.name}' in {source.order} order vs {order} order",
                            operator=logical.producer)
        assert isinstance(source.layout, Tiled) and order is not None
        placed = Placed(self._relay(logical, source, order), source.layout.in_order(order))
        variants.append(placed)
        return placed

    # Derived streams, shared where they are equal

    def derive(self, key: tuple, make: Any) -> Stream:
        """``make()``, or what it gave before for an equal ``key``."""
        if key not in self._derived:
            self._derived[key] = make()
        return self._derived[key]

    def _relay(self, logical: Stream, source: Placed, order: Order) -> Stream:
        """The same tiles in the other order."""
        layout, stream = source.layout, source.stream
        assert isinstance(layout, Tiled)
        if isinstance(layout.type, Tile) and 1 in (layout.type.rows, layout.type.cols):
            return self.as_vector(self.line(stream), layout.in_order(order), f"{logical.name}_{order}")
        outer, inner = layout.dims
        return self.replay(stream, (inner, outer), (1, inner), f"{logical.name}_{order}")

    def buffer(self, stream: Stream, rank: int) -> Stream:
        """References to buffers of the ``rank`` inner dimensions, which are a tile's and so not empty, one bufferize
        however many use it."""
        return self.derive(("buffer", stream.name, rank),
                           lambda: ops.bufferize(stream, rank=rank, hollow=True,
                                                 name=self.name(f"{stream.name}_buffer")))

    def replay(self, stream: Stream, shape: tuple[int, ...], stride: tuple[int, ...], name: str) -> Stream:
        """The two inner dimensions, buffered, once through the affine view."""
        return self.view(self.buffer(stream, 2), shape, stride, name)

    def view(self, refs: Stream, shape: tuple[int | None, ...], stride: tuple[int, ...], name: str) -> Stream:
        """Each buffer once through an affine view. The reference is its own pass request (c = 0): no dimension is
        added, and a bare stop stays one bare stop."""
        return self.derive(("view", refs.name, shape, stride), lambda: ops.streamify(
            refs, ref=refs, shape=shape, stride=stride, name=self.name(name)))

    def passes(self, stream: Stream, rank: int, times: int, name: str) -> Stream:
        """The ``rank`` inner dimensions ``times`` times, in a new dimension above them."""
        refs = self.buffer(stream, rank)
        return self.derive(("passes", refs.name, times), lambda: ops.streamify(
            refs, repeat=times, name=self.name(name)))

    def repeated(self, stream: Stream, times: int, name: str) -> Stream:
        """Each element ``times`` times, in a new inner dimension."""
        return self.derive(("repeat", stream.name, times),
                           lambda: ops.repeat(stream, times, name=self.name(name)))

    def merged(self, stream: Stream, low: int, high: int, name: str) -> Stream:
        """Dimensions ``low``..``high`` as one."""
        return self.derive(("flatten", stream.name, low, high),
                           lambda: ops.flatten(stream, low, high, name=self.name(name)))

    def line(self, stream: Stream) -> Stream:
        """A vector's tiles ``[.., n, 1]`` or ``[.., 1, n]`` as ``[.., n]``."""
        return self.merged(stream, 0, 1, f"{stream.name}_line")

    def as_vector(self, line: Stream, layout: Tiled | RowTiled, name: str) -> Stream:
        """``[.., n]`` as the vector's layout, ``[.., n, 1]`` or ``[.., 1, n]``."""
        if isinstance(layout, RowTiled):   # a column
            return self.repeated(line, 1, name)
        assert isinstance(layout.type, Tile)
        across = layout.type.rows == 1 and layout.type.cols != 1   # a row vector: its tiles differ in their column
        # One of the two dimensions is 1 because a side of the logical tile is 1, not because it has one tile.
        if (layout.order == "row") == across:   # the 1 is outside
            count = layout.count
            return self.derive(("wrap", line.name), lambda: ops.reshape(line, chunk=count, name=self.name(name))[0])
        return self.repeated(line, 1, name)

    # Broadcasting of one operand to the grid of another

    def to_grid(self, op: Operator, index: int, target: Tiled | RowTiled) -> Stream:
        """The physical stream of an input, each tile as often as the grid of ``target`` needs it: 1 x 1 tiles
        everywhere, columns ``Tile(R, 1)`` in every column, rows ``Tile(1, C)`` in every row."""
        if isinstance(target, RowTiled):
            return self._to_rows(op, index, target)
        stream = op.inputs[index]
        whole, part = target.type, stream.type
        assert isinstance(whole, Tile) and isinstance(part, Tile)
        # Decided on the logical tiles, not on how many physical tiles they have: a netlist serves many counts.
        if (part.rows, part.cols) == (whole.rows, whole.cols):
            return self.input(op, index, target.order).stream
        placed = self.input(op, index)
        physical = placed.stream
        outer, inner = target.dims
        if not isinstance(placed.layout, Tiled):
            first = self.repeated(physical, outer, f"{physical.name}_over")
            return self.repeated(first, inner, f"{physical.name}_over_grid")
        line = self.line(physical)
        if (part.cols == 1) == (target.order == "row"):   # each tile stays for the inner dimension
            return self.repeated(line, inner, f"{physical.name}_wide")
        refs = self.buffer(line, 1)
        return self.view(refs, (outer, inner), (0, 1), f"{physical.name}_wide")

    def _to_rows(self, op: Operator, index: int, target: RowTiled) -> Stream:
        """As `to_grid` for a grid whose number of rows of tiles another input of ``op`` says."""
        placed = self.input(op, index)
        layout, physical = placed.layout, placed.stream
        whole = [i for i, s in enumerate(op.inputs) if self._fills(s, target)]
        if index in whole:
            return self.aligned(physical, target)
        if not whole:
            operands = ", ".join(str(s.type) for s in op.inputs)
            raise ShapeMismatch(f"operands {operands} vs at least one of {target.type}", operator=op,
                                fix="combine tiles of dynamic rows with smaller ones one at a time")
        ref = self.aligned(self.input(op, whole[0]).stream, target)
        if isinstance(layout, RowTiled):    # a column: each tile for the whole row
            return ops.expand(self.aligned(physical, layout), ref, rank=1, name=self.name(f"{physical.name}_wide"))
        if not isinstance(layout, Tiled):
            once = self.repeated(self.repeated(physical, 1, f"{physical.name}_over"), 1, f"{physical.name}_once")
            return ops.expand(once, ref, rank=2, name=self.name(f"{physical.name}_wide"))
        refs = self.buffer(self.line(physical), 1)
        return ops.streamify(refs, ref=self.last(ref, 1), name=self.name(f"{physical.name}_wide"))

    def _fills(self, stream: Stream, target: RowTiled) -> bool:
        layout = self.layout(stream)
        return isinstance(layout, RowTiled) and layout.type.cols == target.type.cols

    def aligned(self, stream: Stream, layout: RowTiled) -> Stream:
        """The stream with the row dimension of ``layout``, which is what it is at run time."""
        shape = (*stream.shape[:-2], *layout.dims)
        if stream.shape == shape:
            return stream
        if stream.consumers:
            stream = self.derive(("same", stream.name, shape),
                                 lambda: ops.flatten(stream, 0, 0, name=self.name(f"{stream.name}_as")))
            if stream.shape == shape:
                return stream
        return stream.assume(shape)

    # What rules need of their inputs

    def last(self, stream: Stream, rank: int) -> Stream:
        """The last element of every ``rank`` inner dimensions, none of which is ever 0."""
        return self.derive(("last", stream.name, rank), lambda: ops.accum(
            fn.last(), stream, rank=rank, hollow=may_be_bare(stream, rank), name=self.name(f"{stream.name}_once")))

    def single(self, ref: Stream) -> Stream:
        """One physical element for each logical one, for operators that need only a stream's stops."""
        placed = self.get(ref)
        return self.last(placed.stream, placed.layout.inner) if placed.layout.inner else placed.stream

    def input(self, op: Operator, index: int, order: Order | None = None) -> Placed:
        """As `get` for an input; buffered where a fork and a join would otherwise wait for each other."""
        placed = self.get(op.inputs[index], order)
        if (op.name, index) not in self.holds or not placed.layout.inner:
            return placed
        if isinstance(placed.layout, RowTiled):
            refs = self.buffer(placed.stream, 2)
            stream = self.derive(("held", refs.name), lambda: ops.streamify(
                refs, ref=refs, name=self.name(f"{placed.stream.name}_held")))
            return Placed(stream, placed.layout)
        assert isinstance(placed.layout, Tiled)
        outer, inner = placed.layout.dims
        stream = self.replay(placed.stream, (outer, inner), (inner, 1), f"{placed.stream.name}_held")
        return Placed(stream, placed.layout)
