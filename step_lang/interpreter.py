"""The interpreter: what a program means, exactly, as values and as token streams."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import sympy

from .arbitration import Arbiter, check_traces
from .cycles import components, run_cycle
from .dims import Dim, Ragged, buffer_symbol, count_symbol, elements, format_shape, is_ragged, is_static
from .errors import ProgramError, ShapeMismatch, StepError, StreamProtocolError, TensorError, TypeMismatch
from .lengths import check_length
from .numerics import Numerics
from .operator import Operator
from .program import Program, Tensor
from .stream import Stream
from .tokens import Buffer, Data, TokenStream, data_length
from .types import BufferRef, Selector, Tile, Tuple, Type

__all__ = [
    "Context",
    "Result",
    "check_host_shapes",
    "check_inputs",
    "check_tensors",
    "extents",
    "interpret",
    "measure_symbols",
]

_OWN_DIMENSION = ("an empty vector became an element (as in a fold of the dimensions below): give the result of the "
                  "fold a dimension of its own with assume, or leave empty groups out by accum(hollow=True)")


@dataclass
class Context:
    """What operators see while they are interpreted.

    ``tensors`` holds the contents by tensor name, ``inputs`` what the host provides by input stream name,
    ``arbitration`` the recorded grants by operator name (SPEC section 2, ties and order). Operators count the bytes
    they move and the FLOPs they do. ``arbiters`` has the grants given so far, ``scratch`` what operators of cycles
    remember between steps, both by operator name.
    """

    numerics: Numerics
    tensors: dict[str, np.ndarray]
    inputs: Mapping[str, Any]
    arbitration: Mapping[str, Sequence[int]]
    offchip_read_bytes: int = 0
    offchip_write_bytes: int = 0
    flops: int = 0
    arbiters: dict[str, Arbiter] = field(default_factory=dict)
    scratch: dict[str, Any] = field(default_factory=dict)

    def arbiter(self, operator: Operator) -> Arbiter:
        """The arbiter of ``operator`` in this run."""
        if operator.name not in self.arbiters:
            self.arbiters[operator.name] = Arbiter(operator, self.arbitration.get(operator.name))
        return self.arbiters[operator.name]


@dataclass
class Result:
    """What a program did.

    ``tensors`` are the written tensors by name (positions nothing wrote are zero), ``streams`` every stream's
    tokens by stream name (`stream` also takes the Stream), ``symbols`` the measured value of every dynamic dimension
    and element count, by SymPy symbol; bytes and FLOPs are measured, and per operator in ``rows``. ``arbitration`` are
    the grants of each operator that arbitrates, by its name; given to `interpret` they repeat the run.
    """

    tensors: dict[str, np.ndarray]
    streams: dict[str, TokenStream]
    symbols: dict[sympy.Symbol, int]
    offchip_read_bytes: int
    offchip_write_bytes: int
    flops: int
    rows: dict[str, dict[str, int]] = field(default_factory=dict)
    arbitration: dict[str, list[int]] = field(default_factory=dict)

    @property
    def offchip_bytes(self) -> int:
        return self.offchip_read_bytes + self.offchip_write_bytes

    def stream(self, stream: Stream | str) -> TokenStream:
        """Tokens of a stream, by name or by Stream."""
        return self.streams[stream if isinstance(stream, str) else stream.name]


def interpret(program: Program, tensors: Mapping[str, np.ndarray], inputs: Mapping[str, Any] | None = None,
              numerics: Numerics | None = None, symbols: Mapping[Any, int] | None = None,
              arbitration: Mapping[str, Sequence[int]] | None = None, keep_streams: bool = True) -> Result:
    """Run ``program`` on ``tensors`` (by name, dtype the numpy dtype of the declared one).

    Parameters
    ----------
    inputs : values of input streams by name: a `TokenStream` or nested lists.
    numerics : numeric parameters of the hardware that is to be matched (None: the defaults).
    symbols : run-time values of dynamic dimensions that the caller claims; checked like any other.
    arbitration : recorded grants by operator name, to be replayed (see `step_lang.arbitration`); operators that are not
        in it use index order.
    keep_streams : keep every stream's tokens in the result.

    Raises a `StepError` that names operator and source line for tensors that are missing or of the wrong shape or
    dtype, for streams that do not agree at run time, for shapes that do not hold, for traces that do not fit
    (`ArbitrationError`) and for loops that stop (`DeadlockError`).
    """
    program.check()
    _check_lengths(program)
    contents = check_tensors(program, tensors)
    check_inputs(program, inputs or {})
    check_traces(program, arbitration or {})
    ctx = Context(numerics or Numerics(), contents, dict(inputs or {}), dict(arbitration or {}))
    values: dict[str, TokenStream] = {}
    rows = {op.name: {"offchip_read_bytes": 0, "offchip_write_bytes": 0, "flops": 0} for op in program.operators}

    def account(operator: Operator, work: Callable[[], Any]) -> Any:
        """Do ``work`` of ``operator``, booking what it costs and placing its errors."""
        before = {key: getattr(ctx, key) for key in rows[operator.name]}
        try:
            return work()
        except StepError as error:
            raise error.at(operator) from None
        except MemoryError as error:
            raise ProgramError(f"its streams, in the interpreter: {error or 'more'} vs the memory of this machine",
                               operator=operator, fix="use smaller counts or tensors") from None
        finally:
            for key, value in before.items():
                rows[operator.name][key] += getattr(ctx, key) - value

    for group in components(program):
        if len(group) > 1 or any(stream.producer is group[0] for stream in group[0].inputs):
            results = run_cycle(ctx, group, values, account)
        else:
            (only,) = group
            made = account(only, partial(only.interpret, ctx, [values[stream.name] for stream in only.inputs]))
            results = {stream.name: tokens for stream, tokens in zip(only.outputs, made, strict=True)}
        for operator in group:
            account(operator, partial(_finish, ctx, operator, results))
        values.update(results)
    measured = measure_symbols(program, values, symbols)
    written = {tensor.name: ctx.tensors[tensor.name] for op in program.operators for tensor in op.tensors_written}
    grants = {op.name: list(ctx.arbiter(op).grants) for op in program.operators if op.arbitrates}
    return Result(written, values if keep_streams else {}, measured, ctx.offchip_read_bytes, ctx.offchip_write_bytes,
                  ctx.flops, rows, grants)


def _finish(ctx: Context, operator: Operator, results: Mapping[str, TokenStream]) -> None:
    """Check what ``operator`` made, and that its trace is used up."""
    for stream in operator.outputs:
        tokens = results[stream.name]
        if tokens.rank != stream.rank:
            raise StreamProtocolError(f"stream '{stream.name}': rank {tokens.rank} vs {stream.rank}")
        tokens.check()
    if operator.arbitrates:
        ctx.arbiter(operator).finish()


def _check_lengths(program: Program) -> None:
    """Raise `ProgramError` for a stream of a static shape with more elements than are worth beginning with."""
    for stream in program.streams:
        count = math.prod(stream.shape) if all(map(is_static, stream.shape)) else 0
        try:
            check_length(count, f"stream '{stream.name}' of shape {format_shape(stream.shape)}")
        except ProgramError as error:
            raise error.at(stream.producer) from None


def check_inputs(program: Program, inputs: Mapping[str, Any]) -> None:
    """Raise `TensorError` for values of a stream that is no input stream of ``program``."""
    names = [op.name for op in program.operators if op.kind == "input_stream"]
    for name in inputs:
        if name not in names:
            raise TensorError(f"input stream '{name}': given vs the program's {', '.join(names) or 'none'}",
                              source=program.source, fix="give only input streams that the program has")


def check_tensors(program: Program, tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Contents of every tensor of ``program``: those given, checked, and zeros for those that the program writes.

    Raises `TensorError` for one that is missing, unknown, or of the wrong shape or dtype.
    """
    contents: dict[str, np.ndarray] = {}
    written = [tensor.name for op in program.operators for tensor in op.tensors_written]
    read = [tensor.name for op in program.operators for tensor in op.tensors_read]
    kept = [*read, *(tensor.name for op in program.operators if op.ordered_access for tensor in op.tensors_written)]
    for name in tensors:
        if name not in program.tensors:
            raise TensorError(f"tensor '{name}': given vs the program's {', '.join(program.tensors) or 'none'}",
                              source=program.source, fix="give only tensors that the program declares")
    for name, tensor in program.tensors.items():
        if name in tensors:
            contents[name] = _check_tensor(tensor, np.asarray(tensors[name]))
        elif name in read and name not in written:
            raise TensorError(f"missing vs shape {list(tensor.shape)} of {tensor.dtype}", operator=tensor,
                              fix="pass it in tensors")
        else:
            contents[name] = np.zeros(tensor.shape, dtype=tensor.dtype.numpy)
    for name in written:  # never write into the caller's array; a linear store starts from zeros
        contents[name] = contents[name].copy() if name in kept else np.zeros_like(contents[name])
    return contents


def _check_tensor(tensor: Tensor, array: np.ndarray) -> np.ndarray:
    if array.shape != tensor.shape:
        raise TensorError(f"shape {list(array.shape)} vs {list(tensor.shape)}", operator=tensor,
                          fix="pass an array of the declared shape")
    if array.dtype != tensor.dtype.numpy:
        raise TensorError(f"dtype {array.dtype} vs {tensor.dtype.numpy} ({tensor.dtype})", operator=tensor,
                          fix=f"convert it with .astype(step_lang.{tensor.dtype}.numpy)")
    return array


# Run-time check of shapes and types


def extents(tokens: TokenStream, level: int) -> tuple[np.ndarray, np.ndarray]:
    """Measured sizes of dimension ``D_level``, one for each of its vectors, and a bool mask: which are certain.

    A bare ``S_s`` that is all of a vector says that one of that vector's dimensions is 0, not which; sizes that
    depend on it are not certain.
    """
    stop, empty = tokens.stop.astype(np.int64), tokens.empty
    counted = ~empty if level == 0 else stop >= level
    if level == tokens.rank:
        return np.array([int(counted.sum())]), np.array([True])
    ends = np.flatnonzero(stop >= level + 1)
    totals = np.concatenate([[0], np.cumsum(counted)[ends]])
    sizes = np.diff(totals)
    starts = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    alone = (starts == ends) & empty[ends]
    certain = ~alone
    if level == 0:
        # Alone and closing only the level-1 vector: that vector is certainly empty.
        previous = np.where(starts > 0, stop[starts - 1], tokens.rank)
        certain |= alone & (np.minimum(previous, stop[ends]) == 1)
    return sizes, certain


def measure_symbols(program: Program, values: Mapping[str, TokenStream],
                    claims: Mapping[Any, int] | None = None) -> dict[sympy.Symbol, int]:
    """Measure every dynamic dimension and element count of ``program``'s streams, and check that every shape and type
    holds. ``claims`` are values known beforehand, by symbol or name. Raises `ShapeMismatch`, `TypeMismatch`."""
    bound: dict[sympy.Symbol, int] = {}
    wanted = {s.name: s for stream in program.streams for d in _dims_of(stream) for s in sympy.sympify(d).free_symbols}
    for key, value in (claims or {}).items():
        symbol = wanted.get(str(key))
        if symbol is not None:
            bound[symbol] = int(value)
    deferred: list[tuple[Stream, int, int]] = []
    counted: dict[sympy.Symbol, Stream] = {}
    for stream in program.streams:
        tokens = values[stream.name]
        for level, dim in enumerate(reversed(stream.shape)):
            prefix = stream.shape[:len(stream.shape) - level]
            if is_ragged(dim):
                if level == 0 or not any(is_ragged(d) for d in stream.shape[len(stream.shape) - level:]):
                    symbol, count = count_symbol(prefix), _count(tokens, level)
                    if isinstance(stream.type, BufferRef) or (level and _bare_above(tokens, level)):
                        # Which dimension is empty is not certain; an empty vector may have an empty buffer.
                        bound.setdefault(symbol, count)
                        continue
                    if symbol in counted and bound[symbol] != count:
                        raise ShapeMismatch(
                            f"stream '{stream.name}' of shape {format_shape(stream.shape)}: {count} of {dim} at run "
                            f"time vs {bound[symbol]} in stream '{counted[symbol].name}'", operator=stream.producer,
                            fix=_OWN_DIMENSION)
                    bound[symbol] = count
                    counted.setdefault(symbol, stream)
                continue
            sizes, certain = extents(tokens, level)
            for size in dict.fromkeys(sizes[certain].tolist()):
                if isinstance(dim, int):
                    if size != dim:
                        _fail(stream, level, dim, size)
                elif isinstance(dim, sympy.Symbol):
                    if bound.setdefault(dim, size) != size:
                        _fail(stream, level, dim, size, bound[dim])
                else:
                    deferred.append((stream, level, size))
    for stream, level, size in deferred:
        dim = stream.shape[stream.rank - level]
        expected = _value(dim, bound)
        if expected.is_number and int(expected) != size:
            _fail(stream, level, dim, size, int(expected))
    for stream in program.streams:
        if isinstance(stream.type, BufferRef):
            _measure_buffers(stream.type, values[stream.name].data, bound)
        _check_empties(stream, values[stream.name], bound)
        try:
            _check_data(stream.type, values[stream.name].data, bound)
        except StepError as error:
            error.message = f"stream '{stream.name}': {error.message}"
            error.operator = None
            raise error.at(stream.producer) from None
        _check_count(stream, values[stream.name], bound)
    for operator in program.operators:
        operator.measure([values[stream.name] for stream in operator.inputs], bound)
    types = {s.type.tile if isinstance(s.type, BufferRef) else s.type for s in program.streams}
    for symbol in (*wanted.values(), *(s for type_ in types for s in sympy.sympify(type_.nbytes).free_symbols)):
        bound.setdefault(symbol, 0)  # no stream had an element, or a vector, of that size
    return dict(sorted(bound.items(), key=lambda item: item[0].name))


def check_host_shapes(program: Program, values: Mapping[str, TokenStream]) -> None:
    """Check that the dimensions of input streams that are not ragged are what ``values``, by name, say. Raises
    `ShapeMismatch`."""
    bound: dict[sympy.Symbol, int] = {}
    for name, tokens in values.items():
        stream = program.operator(name).output
        if tokens.rank != stream.rank:
            raise ShapeMismatch(f"values of rank {tokens.rank} vs {stream.rank}", operator=stream.producer)
        for level, dim in enumerate(reversed(stream.shape)):
            if is_ragged(dim) or not isinstance(dim, (int, sympy.Symbol)):
                continue
            sizes, certain = extents(tokens, level)
            for size in dict.fromkeys(sizes[certain].tolist()):
                if isinstance(dim, int):
                    if size != dim:
                        _fail(stream, level, dim, size)
                elif bound.setdefault(dim, size) != size:
                    _fail(stream, level, dim, size, bound[dim])


def _count(tokens: TokenStream, level: int) -> int:
    """Number of entries of dimension ``level`` in all."""
    if level == 0:
        return tokens.elements
    return int((tokens.stop >= level).sum()) - _bare_above(tokens, level)


def _bare_above(tokens: TokenStream, level: int) -> int:
    """Bare stops that are all of a vector above ``level``: entries that do not exist."""
    previous = np.concatenate([[tokens.rank], tokens.stop[:-1]])
    return int((tokens.empty & (np.minimum(previous, tokens.stop) > level)).sum())


def _dims_of(stream: Stream) -> list[Dim]:
    return list(stream.shape)


def _value(dim: Dim, bound: Mapping[sympy.Symbol, int]) -> sympy.Expr:
    """``dim`` with values for the symbols it has that are known: programs have many, an expression few."""
    expression = sympy.sympify(dim)
    known = {symbol: sympy.Integer(bound[symbol]) for symbol in expression.free_symbols if symbol in bound}
    return expression.xreplace(known) if known else expression


def _fail(stream: Stream, level: int, dim: Dim, size: int, bound: int | None = None) -> None:
    expected = f"{dim}" if bound is None else f"{dim} = {bound}"
    claim = "" if stream.shape == stream.inferred_shape else " (assumed)"
    raise ShapeMismatch(f"stream '{stream.name}' of shape {format_shape(stream.shape)}{claim}: D_{level} is {size} at "
                        f"run time vs {expected}", operator=stream.producer)


def _check_count(stream: Stream, tokens: TokenStream, bound: Mapping[sympy.Symbol, int]) -> None:
    """``||stream||``, from which its traffic is computed, must be the elements that it has."""
    counted = any(map(is_ragged, stream.shape)) and not isinstance(stream.type, BufferRef)
    expected = _value(elements(stream.shape), bound) if counted else None
    if expected is not None and expected.is_number and int(expected) != tokens.elements:
        raise ShapeMismatch(f"stream '{stream.name}' of shape {format_shape(stream.shape)}: {tokens.elements} elements "
                            f"at run time vs {expected}", operator=stream.producer, fix=_OWN_DIMENSION)


def _check_empties(stream: Stream, tokens: TokenStream, bound: Mapping[sympy.Symbol, int]) -> None:
    """Where a bare stop is all of a vector, one of that vector's dimensions must be able to be 0."""
    previous = np.concatenate([[tokens.rank], tokens.stop[:-1]]) if len(tokens) else tokens.stop
    for depth in np.unique(np.minimum(previous, tokens.stop)[tokens.empty]).tolist():
        inner = stream.shape[len(stream.shape) - depth:]
        if not any(is_ragged(d) or _value(d, bound) == 0 or _value(d, bound).free_symbols for d in inner):
            raise ShapeMismatch(f"stream '{stream.name}' of shape {format_shape(stream.shape)}: an empty vector at "
                                f"run time vs dimensions {format_shape(inner)}", operator=stream.producer)


def _measure_buffers(type_: BufferRef, data: Data, bound: dict[sympy.Symbol, int]) -> None:
    """Bind what stands for the largest of buffers that differ."""
    ragged = [i for i, dim in enumerate(type_.shape) if is_ragged(dim)]
    if ragged:
        symbol, level = buffer_symbol(type_.shape[:ragged[-1] + 1]), len(type_.shape) - 1 - ragged[-1]
        sizes = [int((buffer.stop >= level).sum()) for buffer in data if isinstance(buffer, Buffer)]
        bound[symbol] = max([bound.get(symbol, 0), *sizes])


def _check_data(type_: Type, data: Data, bound: dict[sympy.Symbol, int]) -> None:
    """Check that ``data`` is of ``type_``, binding symbols of tile sizes."""
    if isinstance(type_, Tuple):
        for member, part in zip(type_.members, data, strict=True):
            _check_data(member, part, bound)
    elif isinstance(type_, Tile):
        arrays = [data] if isinstance(data, np.ndarray) else data
        for array in arrays:
            if data_length(array) == 0 and isinstance(data, np.ndarray):
                continue
            if array.dtype != type_.dtype.numpy:
                raise TypeMismatch(f"dtype {array.dtype} vs {type_.dtype}")
            for dim, size in zip((type_.rows, type_.cols), array.shape[-2:]):
                if is_ragged(dim):
                    # What memory must hold: the largest. (As many rows as a stream has elements are measured as those.)
                    if isinstance(dim, Ragged):
                        bound[dim] = max(bound.get(dim, 0), size)
                    continue
                if isinstance(dim, sympy.Symbol):
                    bound.setdefault(dim, size)
                expected = _value(dim, bound)
                if expected.is_number and int(expected) != size:
                    raise TypeMismatch(f"tile of {array.shape[-2]} x {array.shape[-1]} vs {type_}")
    elif isinstance(type_, Selector):
        if not isinstance(data, np.ndarray) or data.shape[1:] != (type_.n,):
            raise TypeMismatch(f"selector data vs {type_}")
    elif isinstance(type_, BufferRef) and not all(isinstance(buffer, Buffer) for buffer in data):
        raise TypeMismatch(f"buffer data vs {type_}")


