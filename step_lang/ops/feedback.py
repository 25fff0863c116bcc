"""feedback: a stream that is connected later, which is how a graph gets a cycle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..dims import Shape, as_shape, dims_equal, format_shape, is_ragged
from ..errors import BadParameter, ProgramError, ShapeMismatch, TypeMismatch, UnconnectedStream
from ..operator import Operator
from ..stream import Stream
from ..tokens import TokenStream
from ..types import BufferRef, Selector, Tile, Tuple, Type, types_equal

__all__ = ["Feedback", "FeedbackStream", "feedback", "feedback_connect"]


class FeedbackStream(Stream):
    """The stream of a `feedback`, with `connect`."""

    def connect(self, stream: Stream) -> None:
        """Feed ``stream`` back into this one, once. Raises `ProgramError`, `TypeMismatch`, `ShapeMismatch`."""
        assert isinstance(self.producer, Feedback)
        self.producer.connect(stream)


class Feedback(Operator):
    """See `feedback`. It has no input until `connect` gives it one."""

    kind = "feedback"
    breaks_cycle = True

    def __init__(self, type: Type, shape: Any, name: str | None):
        self.type, self.shape = type, shape
        super().__init__([], name)
        made = self.outputs[0]
        self.outputs[0] = FeedbackStream(self, 0, made.name, made.type, made.shape)

    def infer(self) -> list[tuple[Type, Shape]]:
        if not isinstance(self.type, (Tile, Selector, BufferRef, Tuple)):
            raise TypeMismatch(f"type: {self.type!r} vs a data type", operator=self)
        self.shape = as_shape(self.shape)
        if not self.shape:
            raise BadParameter("shape: () vs at least one dimension", operator=self)
        return [(self.type, self.shape)]

    def connect(self, stream: Stream) -> None:
        """See `FeedbackStream.connect`."""
        if not isinstance(stream, Stream):
            raise TypeMismatch(f"input: {stream!r} vs a Stream", operator=self,
                               fix="an operator with several outputs returns a tuple; pick one")
        if stream.program is not self.program:
            raise UnconnectedStream(f"stream '{stream.name}' belongs to program '{stream.program.name}' vs "
                                    f"'{self.program.name}'", operator=self)
        if self.inputs:
            raise ProgramError(f"connected twice: '{stream.name}' vs '{self.inputs[0].name}'", operator=self)
        if not types_equal(stream.type, self.type):
            raise TypeMismatch(f"type of '{stream.name}': {stream.type} vs {self.type}", operator=self)
        shape = self.output.shape
        if len(shape) != len(stream.shape) or not all(
                dims_equal(a, b) or (is_ragged(a) and is_ragged(b)) for a, b in zip(shape, stream.shape)):
            raise ShapeMismatch(f"shape of '{stream.name}': {format_shape(stream.shape)} vs {format_shape(shape)}",
                                operator=self, fix="declare the feedback with the dimensions of what is fed back")
        self.inputs.append(stream)
        stream.consumers.append(self)

    def check(self) -> None:
        if not self.inputs:
            raise UnconnectedStream(f"feedback '{self.name}': never connected vs one stream", operator=self,
                                    fix="call connect(stream) on it")

    def interpret(self, ctx: Any, inputs: Sequence[TokenStream]) -> list[TokenStream]:
        return [inputs[0]]


def feedback(type: Type, shape: Sequence[Any], *, name: str | None = None) -> FeedbackStream:
    """A stream of ``type`` and ``shape`` in the current program that is used before it is made: give what makes it to
    its ``connect``. A loop needs a token to start with, from outside (a `reassemble` that takes the first ones from
    elsewhere); one without is a `DeadlockError` at run time.

    A ragged dimension of ``shape`` stands for any ragged one of the stream connected.
    """
    out = Feedback(type, shape, name).output
    assert isinstance(out, FeedbackStream)
    return out


def feedback_connect(feedback: FeedbackStream, stream: Stream) -> None:
    """``feedback.connect(stream)``."""
    feedback.connect(stream)
