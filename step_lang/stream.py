"""Streams: the edges of a program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .dims import Shape, as_shape, elements, format_shape, is_static
from .errors import ProgramError, ShapeMismatch
from .types import Type

if TYPE_CHECKING:
    from .operator import Operator

__all__ = ["Stream"]


class Stream:
    """A stream of elements of ``type``.

    Attributes
    ----------
    name : unique in the program; the producer's name, with ``_<label>`` where that has several outputs.
    type : type of its elements.
    shape : dimensions, outermost first; a rank-N stream has N + 1.
    producer, index : the operator that makes it, and which of its outputs it is.
    consumers : operators that use it, in order of creation, once for each use.
    optional : whether it may be left unused (padding flags).
    inferred_shape : the shape before `assume`.
    """

    def __init__(self, producer: Operator, index: int, name: str, type: Type, shape: Shape, optional: bool = False):
        self.producer = producer
        self.index = index
        self.name = name
        self.type = type
        self.shape: Shape = tuple(shape)
        self.inferred_shape = self.shape
        self.consumers: list[Operator] = []
        self.optional = optional

    @property
    def program(self):
        return self.producer.program

    @property
    def source(self) -> str:
        return self.producer.source

    @property
    def rank(self) -> int:
        return len(self.shape) - 1

    @property
    def elements(self):
        """``||X||``, a SymPy expression (see `dims.elements`)."""
        return elements(self.shape)

    @property
    def nbytes(self):
        """``||X|| * |x|``, a SymPy expression."""
        return self.elements * self.type.nbytes

    def assume(self, shape: Sequence) -> Stream:
        """Replace the stream's dimensions by what the author knows, and return the stream.

        The interpreter and the RTL test bench check the claim at run time. Must precede every use of the stream.
        Raises `ShapeMismatch` for another rank or for a claim against a static dimension, `ProgramError` after a use.
        """
        shape = as_shape(shape)
        if len(shape) != len(self.shape) or any(
                is_static(a) and is_static(b) and a != b for a, b in zip(shape, self.shape)):
            raise ShapeMismatch(f"assume on stream '{self.name}': {format_shape(shape)} vs {format_shape(self.shape)}",
                                operator=self.producer, fix="keep the rank and the static dimensions")
        if self.consumers:
            raise ProgramError(f"assume on stream '{self.name}' after it was used: assume vs "
                               f"{self.consumers[0].kind} '{self.consumers[0].name}'", operator=self.producer,
                               fix="call assume where the stream is made")
        self.shape = shape
        return self

    def __repr__(self) -> str:
        return f"<Stream {self.name} {format_shape(self.shape)} of {self.type}>"
