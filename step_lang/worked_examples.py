"""The worked examples of SPEC section 3, as data that every layer's tests run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import fn, ops
from .dims import Dim, ragged
from .operator import Operator
from .program import Program
from .stream import Stream
from .tokens import TokenStream, parse_tokens
from .types import Selector, Type, bool_, int32, scalar, u32

__all__ = ["EXAMPLES", "WorkedExample"]


@dataclass(frozen=True)
class WorkedExample:
    """One operator applied to written-out token streams.

    ``inputs`` and ``outputs`` are in SPEC notation, all elements 1 x 1 int32 (flags bool) unless ``types`` says
    otherwise; letters of SPEC are numbers here. ``ranks`` are the inputs' ranks, ``apply`` makes the operator's outputs
    from input streams; a buffer reference is made by bufferize in ``apply``, and ``outputs`` are what the last
    operator's outputs carry.
    """

    name: str
    kind: str
    inputs: tuple[str, ...]
    ranks: tuple[int, ...]
    apply: Callable[..., Stream | tuple[Stream, ...]]
    outputs: tuple[str, ...]
    shapes: tuple[tuple[Dim, ...], ...] | None = None
    """Input shapes where all-ragged ones would not be accepted."""
    types: tuple[Type, ...] | None = None
    """Input types."""
    arbitration: tuple[int, ...] | None = None
    """Grants of the operator that lead to ``outputs``; None: index order does (or the operator does not arbitrate)."""

    @property
    def input_types(self) -> tuple[Type, ...]:
        return self.types or (scalar(int32),) * len(self.ranks)

    @property
    def kinds(self) -> frozenset[str]:
        """Kinds of all operators of the example's program: a layer can run the example if it has all of these."""
        return frozenset(operator.kind for operator in self.build()[0].operators)

    @property
    def traces(self) -> dict[str, tuple[int, ...]]:
        """``arbitration`` by the operator's name, for the interpreter."""
        return {} if self.arbitration is None else {self.build()[1].name: self.arbitration}

    def input_tokens(self) -> list[TokenStream]:
        return [parse_tokens(text, rank, type_) for text, rank, type_ in zip(self.inputs, self.ranks, self.input_types)]

    def build(self) -> tuple[Program, Operator]:
        """A program that applies the operator to input streams ``x0``, ``x1``, ..; and the operator. Its outputs are
        not consumed: the program is to be run operator by operator."""
        shapes = self.shapes or tuple(
            tuple(ragged(f"d{i}_{k}") for k in range(rank, -1, -1)) for i, rank in enumerate(self.ranks))
        with Program(self.kind) as program:
            self.apply(*(ops.input_stream(f"x{i}", type_, shape)
                         for i, (type_, shape) in enumerate(zip(self.input_types, shapes))))
        return program, program.operators[-1]

    def output_tokens(self) -> list[TokenStream]:
        """Expected tokens of the operator's outputs (for bufferize see `nested_buffers`)."""
        _, operator = self.build()
        return [parse_tokens(text, stream.rank, _plain(stream.type))
                for text, stream in zip(self.outputs, operator.outputs)]


def _plain(type_: Type) -> Type:
    return type_ if type_ in (scalar(bool_), scalar(u32)) or isinstance(type_, Selector) else scalar(int32)


_A, _R = ragged("a"), ragged("r")
_TWO = (scalar(int32), scalar(int32), Selector(2))

EXAMPLES: tuple[WorkedExample, ...] = (
    WorkedExample("flatten", "flatten", ("1 2 S1 3 S2 4 S2 D",), (2,),
                  lambda x: ops.flatten(x, 0, 1), ("1 2 3 S1 4 S1 D",)),
    WorkedExample("flatten_empty_vector", "flatten", ("1 S1 S1 2 S2 D",), (2,),
                  lambda x: ops.flatten(x, 0, 1), ("1 2 S1 D",)),
    WorkedExample("flatten_to_rank_0", "flatten", ("1 S1 S1 2 S1 D",), (1,),
                  lambda x: ops.flatten(x, 0, 1), ("1 2 D",)),
    WorkedExample("flatten_empty_vector_last", "flatten", ("1 2 S1 S2 S1 3 S2 D",), (2,),
                  lambda x: ops.flatten(x, 0, 1), ("1 2 S1 3 S1 D",)),
    WorkedExample("reshape", "reshape", ("1 2 3 S1 4 S1 D",), (1,),
                  lambda x: ops.reshape(x, 2, pad=0), ("1 2 S1 3 0 S2 4 0 S2 D", "0 0 S1 0 1 S2 0 1 S2 D")),
    WorkedExample("reshape_done_inside_chunk", "reshape", ("1 2 3 D",), (0,),
                  lambda x: ops.reshape(x, 2, pad=9), ("1 2 S1 3 9 S1 D", "0 0 S1 0 1 S1 D")),
    WorkedExample("reshape_dim_1", "reshape", ("1 2 S1 3 4 S1 5 6 S1 7 8 S2 D",), (2,),
                  lambda x: ops.reshape(x, 2, dim=1),
                  ("1 2 S1 3 4 S2 5 6 S1 7 8 S3 D", "0 0 S1 0 0 S2 0 0 S1 0 0 S3 D"),
                  shapes=((1, 4, 2),)),
    WorkedExample("reshape_dim_1_padded", "reshape", ("1 2 S1 3 4 S1 5 6 S2 D",), (2,),
                  lambda x: ops.reshape(x, 2, dim=1, pad=0),
                  ("1 2 S1 3 4 S2 5 6 S1 0 0 S3 D", "0 0 S1 0 0 S2 0 0 S1 1 1 S3 D"), shapes=((1, 3, 2),)),
    WorkedExample("promote", "promote", ("1 2 3 D",), (0,), ops.promote, ("1 2 3 S1 D",)),
    WorkedExample("promote_empty", "promote", ("D",), (0,), ops.promote, ("D",)),
    WorkedExample("expand", "expand", ("1 S1 2 S1 D", "1 2 S1 3 S1 D"), (1, 1),
                  lambda x, ref: ops.expand(x, ref, rank=1), ("1 1 S1 2 S1 D",), shapes=((_A, 1), (_A, _R))),
    WorkedExample("expand_empty_vector", "expand", ("1 S1 2 S1 3 S1 D", "1 2 S1 S1 3 S1 D"), (1, 1),
                  lambda x, ref: ops.expand(x, ref, rank=1), ("1 1 S1 S1 3 S1 D",), shapes=((_A, 1), (_A, _R))),
    WorkedExample("repeat", "repeat", ("1 S1 2 S1 D",), (1,), lambda x: ops.repeat(x, 2), ("1 1 S2 2 2 S2 D",)),
    WorkedExample("repeat_empty_vector", "repeat", ("1 S1 S1 2 S1 D",), (1,),
                  lambda x: ops.repeat(x, 2), ("1 1 S2 S2 2 2 S2 D",)),
    WorkedExample("accum", "accum", ("1 2 S1 S1 3 S2 D",), (2,),
                  lambda x: ops.accum(fn.add(), x, rank=1, init=0), ("3 0 3 S1 D",)),
    WorkedExample("accum_inner", "accum", ("1 2 S1 3 4 S2 5 6 S2 D",), (2,),
                  lambda x: ops.accum(fn.add(), x, rank=1, inner=1), ("4 6 S1 5 6 S1 D",), shapes=((_A, _R, 2),)),
    WorkedExample("accum_inner_empty", "accum", ("1 2 S2 S2 5 6 S2 D",), (2,),
                  lambda x: ops.accum(fn.add(), x, rank=1, inner=1, init=7), ("8 9 S1 7 7 S1 12 13 S1 D",),
                  shapes=((_A, _R, 2),)),
    WorkedExample("scan", "scan", ("1 2 S1 3 4 S1 D",), (1,),
                  lambda x: ops.scan(fn.add(), x, rank=1, init=0), ("1 3 S1 3 7 S1 D",)),
    WorkedExample("streamify", "streamify", ("1 2 S1 3 S2 D",), (2,),
                  lambda x: ops.streamify(ops.bufferize(x, rank=1), repeat=2), ("1 2 S1 1 2 S2 3 S1 3 S3 D",)),
    WorkedExample("streamify_empty_buffer", "streamify", ("1 2 S1 S1 3 S2 D",), (2,),
                  lambda x: ops.streamify(ops.bufferize(x, rank=1), repeat=2),
                  ("1 2 S1 1 2 S2 S1 S2 3 S1 3 S3 D",)),
    WorkedExample("streamify_reference", "streamify", ("1 2 S1 3 S1 D", "8 8 8 S1 9 S1 D"), (1, 1),
                  lambda x, ref: ops.streamify(ops.bufferize(x, rank=1), ref),
                  ("1 2 S1 1 2 S1 1 2 S2 3 S2 D",), shapes=((_A, _R), (_A, ragged("p")))),
    WorkedExample("partition", "partition", ("1 2 S1 3 S1 4 S1 D", "{0} {0,2} {} D"), (1, 0),
                  lambda x, sel: ops.partition(x, sel, rank=1, num_consumers=3),
                  ("1 2 S1 3 S1 D", "D", "3 S1 D"), shapes=((_A, _R), (_A,)), types=(scalar(int32), Selector(3))),
    WorkedExample("partition_elements", "partition", ("1 2 S1 S1 3 S1 D", "{0} {1} S1 S1 {0,1} S1 D"), (1, 1),
                  lambda x, sel: ops.partition(x, sel, rank=0), ("1 3 D", "2 3 D"),
                  shapes=((_A, _R), (_A, _R)), types=(scalar(int32), Selector(2))),
    WorkedExample("partition_empty_chunk", "partition", ("S1 1 S2 2 S1 S2 D", "{0} {1} S1 {1} {0,1} S1 D"), (2, 1),
                  lambda x, sel: ops.partition(x, sel, rank=1), ("S1 S1 D", "1 S1 2 S1 S1 D"),
                  shapes=((_A, ragged("n"), _R), (_A, ragged("n"))), types=(scalar(int32), Selector(2))),
    WorkedExample("reassemble", "reassemble", ("1 D", "2 3 D", "{1} {0,1} D"), (0, 0, 0),
                  lambda x, y, sel: ops.reassemble([x, y], sel, rank=0), ("2 S1 1 3 S1 D",), types=_TWO),
    WorkedExample("reassemble_other_order", "reassemble", ("1 D", "2 3 D", "{1} {0,1} D"), (0, 0, 0),
                  lambda x, y, sel: ops.reassemble([x, y], sel, rank=0), ("2 S1 3 1 S1 D",), types=_TWO,
                  arbitration=(1, 1, 0)),
    WorkedExample("reassemble_no_bit", "reassemble", ("1 2 D", "D", "{} {0} S1 {0} {} S1 S1 D"), (0, 0, 1),
                  lambda x, y, sel: ops.reassemble([x, y], sel, rank=0), ("S1 1 S2 2 S1 S2 S2 D",), types=_TWO),
    WorkedExample("reassemble_chunks", "reassemble", ("1 2 S1 S1 D", "3 S1 4 5 S1 D", "{0} {0,1} S1 {1} S1 D"),
                  (1, 1, 1),
                  lambda x, y, sel: ops.reassemble([x, y], sel, rank=1), ("1 2 S2 3 S1 S3 4 5 S3 D",), types=_TWO,
                  arbitration=(0, 1, 0, 1)),
    WorkedExample("eager_merge", "eager_merge", ("1 2 S1 D", "3 S1 D"), (1, 1),
                  lambda x, y: ops.eager_merge([x, y]), ("1 2 S1 3 S1 D", "{0} {1} D")),
    WorkedExample("eager_merge_other_order", "eager_merge", ("1 2 S1 D", "3 S1 D"), (1, 1),
                  lambda x, y: ops.eager_merge([x, y]), ("3 S1 1 2 S1 D", "{1} {0} D"), arbitration=(1, 0)),
    WorkedExample("eager_merge_elements", "eager_merge", ("1 2 D", "D", "3 4 D"), (0, 0, 0),
                  lambda x, y, z: ops.eager_merge([x, y, z]), ("1 3 4 2 D", "{0} {2} {2} {0} D"),
                  arbitration=(0, 2, 2, 0)),
    WorkedExample("flat_map", "flat_map", ("2 1 S1 3 S1 D",), (1,), lambda x: ops.flat_map(fn.counter(), x),
                  ("0 1 0 S1 0 1 2 S1 D",), types=(scalar(u32),)),
    WorkedExample("flat_map_no_piece", "flat_map", ("2 0 S1 0 S1 0 1 S1 S1 D",), (1,),
                  lambda x: ops.flat_map(fn.counter(), x), ("0 1 S1 S1 0 S1 S1 D",), types=(scalar(u32),)),
    WorkedExample("flat_map_rank_1", "flat_map", ("10 20 S1 S1 30 S1 D",), (1,),
                  lambda x: ops.flat_map(fn.affine_addresses((1, 2), (0, 1)), x),
                  ("10 11 S1 20 21 S2 S2 30 31 S2 D",), types=(scalar(u32),)),
)
"""SPEC's examples and corner cases of the same operators; load and bufferize, whose values are not tokens, are tested
beside them."""
