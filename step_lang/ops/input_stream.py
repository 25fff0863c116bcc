"""input_stream: values the host provides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..dims import Shape, as_shape
from ..errors import BadParameter, ProgramError, StepError, TensorError, TypeMismatch
from ..operator import Operator
from ..stream import Stream
from ..tokens import TokenStream, data_nbytes
from ..types import Selector, Tile, Tuple, Type

__all__ = ["InputStream", "input_stream"]


class InputStream(Operator):
    """See `input_stream`."""

    kind = "input_stream"
    category = "memory"

    def __init__(self, name: str, type: Type, shape: Any):
        self.type, self.shape = type, shape
        super().__init__([], name)

    def infer(self) -> list[tuple[Type, Shape]]:
        if self.name in self.program.tensors:
            raise ProgramError(f"input stream '{self.name}' vs the tensor of that name, "
                               f"{self.program.tensors[self.name].source}: both are off-chip data that the host knows "
                               "by name", operator=self, fix="give one another name")
        if not _is_plain(self.type):
            raise TypeMismatch(f"type: {self.type} vs a Tile, a Selector or a tuple of them", operator=self)
        self.shape = as_shape(self.shape)
        if not self.shape:
            raise BadParameter("shape: () vs at least one dimension", operator=self)
        return [(self.type, self.shape)]

    def interpret(self, ctx: Any, inputs: list[TokenStream]) -> list[TokenStream]:
        if self.name not in ctx.inputs:
            raise TensorError(f"values of input stream: missing vs shape {list(self.shape)} of {self.type}",
                              operator=self, fix="pass them in inputs, by the stream's name")
        given = self.tokens(ctx.inputs[self.name])
        ctx.offchip_read_bytes += data_nbytes(given.data)
        return [given]

    def tokens(self, given: Any) -> TokenStream:
        """The tokens of values that the host gives: tokens, or nested lists. Raises `TensorError`."""
        if isinstance(given, TokenStream):
            return given
        try:
            return TokenStream.from_nested(given, self.output.rank, self.type)
        except StepError as error:
            raise error.at(self) from None
        except (TypeError, ValueError) as error:
            raise TensorError(f"values of input stream: {error} vs lists nested {self.output.rank + 1} deep of "
                              f"{self.type}", operator=self) from None

    def offchip_read(self) -> Any:
        return self.output.nbytes

    def onchip(self) -> Any:
        return 2 * self.output.type.nbytes


def _is_plain(type_: Any) -> bool:
    if isinstance(type_, Tuple):
        return all(_is_plain(member) for member in type_.members)
    return isinstance(type_, (Tile, Selector))


def input_stream(name: str, type: Type, shape: Sequence[Any]) -> Stream:
    """A stream of ``type`` and ``shape`` whose values the host provides at run time (routing decisions, lengths,
    addresses), kept off-chip and counted as traffic. It belongs to the current program."""
    return InputStream(name, type, shape).output
