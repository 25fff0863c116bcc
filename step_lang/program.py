"""Programs: a graph of operators joined by streams, and the off-chip tensors they use."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .dims import Ragged, whole
from .errors import BadParameter, ProgramError, TensorError, TileDoesNotDivide, UnconnectedStream, UnusedStream
from .stream import Stream
from .types import DTYPES, DType, Tile

if TYPE_CHECKING:
    from .operator import Operator

__all__ = ["Program", "Tensor", "caller_source"]

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_TESTS = os.path.join(_PACKAGE, "tests") + os.sep


def _check_name(what: str, name: object, **place: Any) -> None:
    """Raise `BadParameter` for a name that Verilog, which knows ASCII only, could not have."""
    if not isinstance(name, str) or re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name) is None:
        raise BadParameter(f"{what} name: {name!r} vs an identifier", **place,
                           fix="use letters (A-Z, a-z), digits and _, a letter first")


def caller_source() -> str:
    """``"file.py:12"`` of the innermost frame outside step_lang (its tests count as outside)."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        path = os.path.abspath(frame.f_code.co_filename)
        if not path.startswith(_PACKAGE) or path.startswith(_TESTS):
            break
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


@dataclass(frozen=True, eq=False)
class Tensor:
    """A named off-chip tensor of ``shape`` (rows, cols); tiles of its grid are numbered row-major."""

    program: Program
    name: str
    shape: tuple[int, int]
    dtype: DType
    source: str
    kind: str = "tensor"

    @property
    def nbytes(self) -> int:
        return self.shape[0] * self.shape[1] * self.dtype.bytes

    def grid(self, tile: Tile, operator: Operator | None = None) -> tuple[int, int]:
        """Rows and columns of tiles. Raises `TileDoesNotDivide`."""
        if not tile.is_static or self.shape[0] % tile.rows or self.shape[1] % tile.cols:
            raise TileDoesNotDivide(
                f"tile of tensor '{self.name}': {tile.rows} x {tile.cols} does not divide "
                f"{self.shape[0]} x {self.shape[1]}", operator=operator or self,
                fix="choose tile sizes that divide the tensor's, or pad the tensor")
        return self.shape[0] // tile.rows, self.shape[1] // tile.cols

    def __repr__(self) -> str:
        return f"<Tensor {self.name} {self.shape[0]} x {self.shape[1]} {self.dtype}>"


class Program:
    """A STeP program.

    ``with Program("name") as p:`` makes it current, so that operators without stream or tensor arguments find it.

    Attributes
    ----------
    name : an identifier.
    operators : in order of creation; a stream's producer precedes its consumers except around a feedback.
    tensors : off-chip tensors by name, in order of creation.
    """

    _active: list[Program] = []

    def __init__(self, name: str):
        _check_name("program", name, source=caller_source())
        self.name = name
        self.source = caller_source()
        self.operators: list[Operator] = []
        self.tensors: dict[str, Tensor] = {}
        self._counts: dict[str, int] = {}
        self._names: set[str] = set()
        self._ragged: dict[Hashable, Ragged] = {}
        self._source_override: list[str] = []

    # Building

    def __enter__(self) -> Program:
        Program._active.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        Program._active.remove(self)

    @staticmethod
    def current() -> Program:
        """The program of the innermost ``with`` block. Raises `ProgramError` outside of any."""
        if not Program._active:
            raise ProgramError("operator outside of a program: none active vs one needed", source=caller_source(),
                               fix="build inside 'with Program(name):'")
        return Program._active[-1]

    def tensor(self, name: str, shape: Sequence[int], dtype: DType) -> Tensor:
        """Declare an off-chip tensor of ``shape`` (rows, cols), an input or an output."""
        source = self._source_override[-1] if self._source_override else caller_source()
        _check_name("tensor", name, source=source)
        if name in self.tensors:
            raise ProgramError(f"tensor '{name}' declared twice: here vs {self.tensors[name].source}", source=source)
        stream = next((op for op in self.operators if op.kind == "input_stream" and op.name == name), None)
        if stream is not None:
            raise ProgramError(f"tensor '{name}' vs the input stream of that name, {stream.source}: both are off-chip "
                               "data that the host knows by name", source=source, fix="give one another name")
        sizes = [whole(n) or 0 for n in shape] if isinstance(shape, (tuple, list)) else []
        if len(sizes) != 2 or min(sizes) < 1:
            raise TensorError(f"shape of tensor '{name}': {shape!r} vs (rows, cols) of positive ints", source=source)
        if not isinstance(dtype, DType):
            raise TensorError(f"dtype of tensor '{name}': {dtype!r} vs one of {', '.join(DTYPES)}", source=source,
                              fix=f"give step_lang.DTYPES[{dtype!r}]" if dtype in list(DTYPES) else None)
        tensor = Tensor(self, name, (sizes[0], sizes[1]), dtype, source)
        self.tensors[name] = tensor
        return tensor

    @contextmanager
    def sourced(self, source: str) -> Iterator[None]:
        """Operators made inside get ``source`` as their source line (for passes that rewrite programs)."""
        self._source_override.append(source)
        try:
            yield
        finally:
            self._source_override.pop()

    def fresh_ragged(self, key: Hashable) -> Ragged:
        """A new ragged dimension, for what a ragged dimension absorbs. ``key`` says what it is (operation, parameters,
        shape): asked for the same again, it is the same, so that streams treated alike still agree."""
        if key not in self._ragged:
            self._ragged[key] = Ragged(f"r.{len(self._ragged) + 1}")
        return self._ragged[key]

    def _add(self, operator: Operator, name: str | None) -> None:
        """Register ``operator`` and give it its name and source."""
        operator.source = self._source_override[-1] if self._source_override else caller_source()
        if name is None:
            number = self._counts.get(operator.kind, 0)
            while f"{operator.kind}_{number}" in self._names:
                number += 1
            self._counts[operator.kind] = number + 1
            name = f"{operator.kind}_{number}"
        operator.name = name
        _check_name("operator", name, operator=operator)
        if name in self._names:
            other = next(op for op in self.operators if op.name == name)
            raise ProgramError(f"operator name '{name}' used twice: here vs {other.source}", operator=operator,
                               fix="give each operator its own name")

    # Reading

    @property
    def streams(self) -> list[Stream]:
        """All streams, in order of creation."""
        return [stream for operator in self.operators for stream in operator.outputs]

    def operator(self, name: str) -> Operator:
        """The operator of that name. Raises `ProgramError`."""
        for operator in self.operators:
            if operator.name == name:
                return operator
        raise ProgramError(f"no operator '{name}' in program '{self.name}'", source=self.source)

    def check(self) -> None:
        """Raise what makes the whole program unusable: no operators, an unused or unconnected stream, a linear store
        to a tensor that is also read, or stored to by another (their order would be timing)."""
        if not self.operators:
            raise ProgramError(f"program '{self.name}': no operators vs at least one", source=self.source)
        for operator in self.operators:
            operator.check()
            for stream in operator.outputs:
                if not stream.consumers and not stream.optional:
                    raise UnusedStream(f"stream '{stream.name}': used by nobody vs at least one consumer",
                                       operator=operator, fix="consume it (store it) or remove the operator")
            for stream in operator.inputs:
                if stream.producer not in self.operators:
                    raise UnconnectedStream(f"stream '{stream.name}': never connected", operator=operator)
        for operator in self.operators:
            for tensor in operator.tensors_written:
                for other in self.operators:
                    if tensor in other.tensors_read and not (operator.ordered_access and other.ordered_access):
                        raise ProgramError(
                            f"tensor '{tensor.name}': written here vs read by {other.kind} '{other.name}' "
                            f"({other.source})", operator=operator, fix="store to a tensor of its own")

    def topological(self) -> list[Operator]:
        """Operators, producers before consumers; feedback edges (``Operator.breaks_cycle``) do not count."""
        order: list[Operator] = []
        placed: set[int] = set()
        pending = list(self.operators)
        while pending:
            ready = [op for op in pending if all(
                id(s.producer) in placed or s.producer.breaks_cycle for s in op.inputs)]
            if not ready:
                raise ProgramError(f"program '{self.name}': a cycle without a feedback", operator=pending[0])
            for op in ready:
                placed.add(id(op))
            order += ready
            pending = [op for op in pending if id(op) not in placed]
        return order

    def __repr__(self) -> str:
        return f"<Program {self.name}: {len(self.operators)} operators>"
