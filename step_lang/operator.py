"""What every operator is: a node of the program, with its types and shapes, its meaning and its costs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import sympy

from .dims import Shape
from .errors import BadParameter, StepError, TypeMismatch, UnconnectedStream
from .program import Program, Tensor
from .stream import Stream
from .types import Type

if TYPE_CHECKING:
    from .interpreter import Context
    from .tokens import TokenStream

__all__ = ["Operator", "static_shape"]


class Operator(ABC):
    """An operator of a program.

    A subclass sets ``kind`` (its file's name), keeps its parameters as attributes *before* calling
    ``super().__init__``, and defines `infer` and `interpret`; costs other than zero, it overrides.

    Attributes
    ----------
    kind, name, source : what it is, its unique name, ``"file.py:12"`` that made it.
    program : the program it belongs to.
    inputs, outputs : streams.
    output_labels : names of the outputs where there are several.
    """

    kind: str
    category: str = "routing"
    """``memory``, ``compute``, ``routing`` or ``shape``: how pictures group it."""
    output_labels: tuple[str, ...] = ()
    optional_outputs: tuple[str, ...] = ()
    """Labels of outputs that may be left unused."""
    breaks_cycle: bool = False
    ordered_access: bool = False
    """Whether the program itself orders this operator's tensor accesses (random access does)."""
    arbitrates: bool = False
    """Whether it serves its inputs in an order that is timing (see `step_lang.arbitration`)."""
    tensors_read: Sequence[Tensor] = ()
    tensors_written: Sequence[Tensor] = ()

    name: str
    source: str

    def __init__(self, inputs: Sequence[Stream], name: str | None = None, program: Program | None = None):
        self.inputs: list[Stream] = list(inputs)
        self.outputs: list[Stream] = []
        streams = [s for s in self.inputs if isinstance(s, Stream)]
        self.program = program or (streams[0].program if streams else Program.current())
        self.program._add(self, name)
        for stream in self.inputs:
            if not isinstance(stream, Stream):
                raise TypeMismatch(f"input: {stream!r} vs a Stream", operator=self,
                                   fix="an operator with several outputs returns a tuple; pick one")
            if stream.program is not self.program:
                raise UnconnectedStream(
                    f"stream '{stream.name}' belongs to program '{stream.program.name}' vs '{self.program.name}'",
                    operator=self, fix="build one program's operators from its own streams")
        for tensor in (*self.tensors_read, *self.tensors_written):
            if not isinstance(tensor, Tensor):
                raise TypeMismatch(f"tensor: {tensor!r} vs a tensor of the program", operator=self,
                                   fix="declare it with Program.tensor")
            if tensor.program is not self.program:
                raise UnconnectedStream(
                    f"tensor '{tensor.name}' belongs to program '{tensor.program.name}' vs '{self.program.name}'",
                    operator=self)
        try:
            results = self.infer()
        except StepError as error:
            raise error.at(self) from None
        # Only an operator that checked out becomes part of the program.
        self.program._names.add(self.name)
        self.program.operators.append(self)
        for index, (type_, shape) in enumerate(results):
            label = self.output_labels[index] if self.output_labels else str(index)
            stream_name = self.name if len(results) == 1 else f"{self.name}_{label}"
            self.outputs.append(Stream(self, index, stream_name, type_, shape, label in self.optional_outputs))
        for stream in self.inputs:
            stream.consumers.append(self)

    @abstractmethod
    def infer(self) -> list[tuple[Type, Shape]]:
        """Type and shape of each output, after checking inputs and parameters."""

    @abstractmethod
    def interpret(self, ctx: Context, inputs: list[TokenStream]) -> list[TokenStream]:
        """Output token streams for input token streams."""

    # Running in a cycle, where inputs grow as outputs do (see `step_lang.cycles`)

    def ready(self, inputs: Sequence[TokenStream], done: Sequence[bool]) -> list[int]:
        """How many beats of each input make whole pieces: ones after which the operator is as at the start of its
        streams, so that `interpret` may run on them alone. ``inputs`` are the beats not yet taken; ``done`` says
        whether an input ends with them. Any number of beats, the same of each, unless an operator says otherwise; not
        asked when all inputs are done."""
        return [min(map(len, inputs))] * len(inputs)

    def step(self, ctx: Context, inputs: Sequence[TokenStream],
             done: Sequence[bool]) -> tuple[list[int], list[TokenStream]]:
        """Go as far as ``inputs`` (the beats not yet taken) allow: beats taken of each, and new beats of each output
        ([] for none at all). ``ctx.scratch`` keeps what an operator must remember between steps, by its name."""
        taken = [len(tokens) for tokens in inputs] if all(done) else self.ready(inputs, done)
        if not any(taken):
            return taken, []
        return taken, self.interpret(ctx, [tokens.cut(0, n) for tokens, n in zip(inputs, taken)])

    def finished(self, left: Sequence[int], done: Sequence[bool]) -> bool:
        """Whether the outputs are done, ``left`` beats of each input not being taken."""
        return all(done) and not any(left)

    def stuck(self, ctx: Context, inputs: Sequence[TokenStream], done: Sequence[bool]) -> None:  # noqa: B027
        """Called when nothing in the operator's cycle can go on: raise if it is this operator that is to blame."""

    def check(self) -> None:  # noqa: B027  (most operators have nothing to add)
        """Whole-program checks of this operator."""

    def measure(self, values: Sequence[TokenStream],  # noqa: B027  (most operators measure nothing of their own)
                bound: dict[sympy.Symbol, int]) -> None:
        """Add to ``bound`` the measured values of symbols that only this operator's costs have; ``values`` are the
        tokens of its inputs."""

    # Costs, SPEC section 5

    def offchip_read(self) -> Any:
        """Bytes read off-chip (SymPy)."""
        return sympy.Integer(0)

    def offchip_write(self) -> Any:
        """Bytes written off-chip (SymPy)."""
        return sympy.Integer(0)

    def onchip(self) -> Any:
        """Bytes of on-chip memory required (SymPy)."""
        return sympy.Integer(0)

    def flops(self) -> Any:
        """FLOPs (SymPy)."""
        return sympy.Integer(0)

    compute_bw: Any = None
    """FLOPs/cycle allocated; None is the hardware's default. Only meaningful where `uses_compute`."""
    uses_compute: bool = False

    # Help for subclasses

    def positive(self, label: str, value: Any, least: int = 1) -> int:
        """``value`` as an int of at least ``least``. Raises `BadParameter`."""
        if isinstance(value, bool) or not hasattr(value, "__index__") or int(value) < least:
            raise BadParameter(f"{label}: {value!r} vs an int of at least {least}", operator=self)
        return int(value)

    def describe(self) -> str:
        """Parameters in a few words, for pictures and reports."""
        return ""

    @property
    def output(self) -> Stream:
        return self.outputs[0]

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name}>"


def static_shape(operator: Operator, label: str, shape: Any, least: int = 1) -> tuple[int, ...]:
    """``shape`` as a tuple of ints of at least ``least``. Raises `BadParameter`."""
    if isinstance(shape, (str, bytes)) or not hasattr(shape, "__iter__"):
        raise BadParameter(f"{label}: {shape!r} vs a sequence of ints", operator=operator)
    return tuple(operator.positive(label, value, least) for value in shape)
