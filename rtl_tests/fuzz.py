"""Random small programs over the operators that hardware has, and what every layer must agree on about them.

A `Recipe` is a list of steps, each the name of one and the numbers it makes its choices with; `cook` makes the program
and the values of its input streams of it, leaving out what does not fit. The same recipe is the same program, and a
recipe cut short or with smaller numbers is a simpler one, which is how hypothesis shrinks (`recipes`). `run` takes the
program through interpreter, lowered interpreter, model and RTL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from hypothesis import strategies as st

from examples.data import random_tensor, random_tensors
from rtl_tests.cosim import RtlRun, build_rtl, check, run_rtl
from rtl_tests.explain import explain
from sim.prediction import Prediction, predict
from step_hw.design import Design
from step_lang import (
    Numerics,
    Program,
    Result,
    Selector,
    Stream,
    Tile,
    TokenStream,
    bf16,
    fn,
    fp32,
    int8,
    int32,
    metrics,
    ops,
    ragged,
    scalar,
    u32,
)
from step_lang.cycles import components, run_cycle
from step_lang.dims import is_static
from step_lang.errors import DeadlockError, StepError
from step_lang.hwconfig import HardwareConfig
from step_lang.interpreter import Context
from step_lang.mapping.operators import MAPPERS
from step_lang.types import BufferRef, bool_

__all__ = ["STEPS", "Cooked", "Outcome", "Recipe", "cook", "recipes", "run"]

MOST = 40
"""Elements that a stream of a random program has at most."""

_T = TypeVar("_T")
Step = tuple[str, tuple[int, ...]]


@dataclass(frozen=True)
class Recipe:
    """``sources`` and ``steps``: (name, choices) each; see `SOURCES` and `STEPS`."""

    sources: tuple[Step, ...]
    steps: tuple[Step, ...]


class Choices:
    """Choices by the numbers of a step, one after the other; 0, the simplest, when they are used up."""

    def __init__(self, numbers: Sequence[int]):
        self._numbers = iter(numbers)

    def number(self, most: int, least: int = 0) -> int:
        """``least`` .. ``most``."""
        return least + next(self._numbers, 0) % (most - least + 1)

    def one_of(self, options: Sequence[_T]) -> _T:
        return options[self.number(len(options) - 1)]

    def yes(self, one_in: int = 2) -> bool:
        """Rarely; no is the simpler answer."""
        return self.number(one_in - 1) == one_in - 1


class Unfit(Exception):
    """A step that is not for this program."""


@dataclass
class Cooked:
    """The program of a recipe, with the values of its input streams."""

    recipe: Recipe
    program: Program
    inputs: dict[str, Any]

    def __str__(self) -> str:
        steps = "\n".join(f"  {op.name}({', '.join(s.name for s in op.inputs)}) {op.describe()} -> "
                          f"{', '.join(f'{list(s.shape)} of {s.type}' for s in op.outputs)}"
                          for op in self.program.operators)
        inputs = "\n".join(f"  {name} = {tokens!r}" for name, tokens in self.inputs.items())
        return f"{self.recipe}\n{steps}\n{inputs}"


@dataclass
class Outcome:
    """``refused``: what a layer said to a program it cannot run; ``wrong``: where layers disagree; ``grants``: of the
    operators that arbitrate, together."""

    refused: str = ""
    wrong: list[str] = field(default_factory=list)
    grants: int = 0
    rtl: bool = False


class Kitchen:
    """A program under construction, interpreted as it grows, so that selectors and addresses fit its streams."""

    def __init__(self, tile: int):
        self.tile = tile
        self.program = Program("random")
        self.inputs: dict[str, Any] = {}
        self.live: list[Stream] = []
        self.values: dict[str, TokenStream] = {}
        self.unsteady: set[str] = set()
        """Streams whose structure depends on the order of grants."""
        self._context = Context(Numerics(group=tile), {}, self.inputs, {})
        self._seen = 0
        self._count = 0

    def name(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def tensor(self, shape: tuple[int, int], dtype: Any) -> Any:
        tensor = self.program.tensor(self.name("t"), shape, dtype)
        self._context.tensors[tensor.name] = random_tensor(tensor.name, shape, dtype)
        return tensor

    def input(self, type_: Any, shape: Sequence[Any], tokens: Any) -> Stream:
        stream = ops.input_stream(self.name("x"), type_, shape)
        self.inputs[stream.name] = tokens
        self.taste()
        return stream

    def taste(self) -> None:
        """Interpret what is new. Raises a StepError, or `Unfit` for streams that grow too long."""
        new = self.program.operators[self._seen:]
        groups = [group for group in components(self.program) if group[0] in new] if new else []
        for group in groups:
            (only, *more) = group
            if only.tensors_written and not only.outputs:
                continue
            if more:
                self.values |= run_cycle(self._context, group, self.values, lambda op, work: work())
            else:
                results = only.interpret(self._context, [self.values[s.name] for s in only.inputs])
                self.values |= {s.name: tokens for s, tokens in zip(only.outputs, results, strict=True)}
            unsteady = any(op.arbitrates or any(s.name in self.unsteady for s in op.inputs) for op in group)
            for stream in (s for op in group for s in op.outputs):
                if len(self.values[stream.name].check()) > MOST:
                    raise Unfit
                if unsteady:
                    self.unsteady.add(stream.name)
        self._seen = len(self.program.operators)

    def pick(self, choose: Choices, fits: Callable[[Stream], bool] = lambda stream: True) -> Stream:
        """A live stream; the youngest is the simplest choice."""
        found = [stream for stream in reversed(self.live) if fits(stream)]
        if not found:
            raise Unfit
        return choose.one_of(found)

    def selectors(self, choose: Choices, stream: Stream, rank: int, bits: int, *, some: bool = False) -> Stream:
        """A selector for each chunk of ``rank``; ``some``: at least one bit each."""
        if stream.name in self.unsteady:
            raise Unfit
        tokens = self.values[stream.name]
        ends = np.flatnonzero(tokens.stop >= rank)
        # A chunk of elements is one, whatever it holds; of rank 0 only an element is one.
        first = np.concatenate(([0], ends[:-1] + 1)) if len(ends) else ends
        alone = tokens.empty[ends] & (first == ends)
        outer = alone & (tokens.stop[ends] > rank) & bool(rank) | alone & (rank == 0)
        stop, empty = tokens.stop[ends] - rank, outer
        rows = [[choose.number(1) == 1 or (some and k == 0) for k in range(bits)] for _ in range(int((~empty).sum()))]
        data = np.array(rows, dtype=bool).reshape(-1, bits)
        shape = stream.shape[:stream.rank + 1 - rank]
        return self.input(Selector(bits), shape, TokenStream(len(shape) - 1, stop, empty, data))


def cook(recipe: Recipe, tile: int = 2) -> Cooked:
    """The program of a recipe. What is left over is stored; steps that do not fit are left out."""
    left_out: set[int] = set()
    while True:
        kitchen = Kitchen(tile)
        with kitchen.program:
            for i, (name, numbers) in enumerate((*recipe.sources, *recipe.steps)):
                if i in left_out:
                    continue
                step = SOURCES[name] if i < len(recipe.sources) else STEPS[name]
                before = len(kitchen.program.operators)
                try:
                    made = step(kitchen, Choices(numbers))
                    kitchen.taste()
                except (StepError, Unfit):
                    left_out.add(i)
                    if len(kitchen.program.operators) == before:
                        continue
                    break  # begin anew without this step
                kitchen.live += made
            else:
                for stream in [s for s in kitchen.program.streams if not s.consumers and not s.optional]:
                    _store(kitchen, stream)
                return Cooked(recipe, kitchen.program, kitchen.inputs)


# Sources


def _scalars(k: Kitchen, choose: Choices) -> list[Stream]:
    """A stream of numbers of one to three dimensions, the inner ones ragged, some of them empty."""
    rank, dtype = choose.number(2), choose.one_of((int32, u32))
    limit = 4 if dtype == u32 else 100

    def level(depth: int) -> list:
        size = choose.number(3)
        return [choose.number(limit - 1) if depth == 0 else level(depth - 1)
                for _ in range(max(1, size) if 0 < depth < rank else size)]

    if rank and choose.yes(3):
        sizes = [choose.number(3, 1) for _ in range(rank + 1)]
        grid = np.array([choose.number(limit - 1) for _ in range(int(np.prod(sizes)))]).reshape(sizes)
        return [k.input(scalar(dtype), sizes, grid.tolist())]
    values = level(rank)
    name = k.name("r")
    shape = (len(values), *(ragged(f"{name}_{i}") for i in range(rank)))
    return [k.input(scalar(dtype), shape, TokenStream.from_nested(values, rank, scalar(dtype)))]


def _load(k: Kitchen, choose: Choices) -> list[Stream]:
    """Tiles of one or two physical tiles a side, or one row or column of them, read in order or by a view."""
    rows, cols = (choose.one_of((k.tile, 1, 2 * k.tile)) for _ in range(2))
    grid = choose.number(3, 1), choose.number(2, 1)
    dtype = choose.one_of((bf16, int32, fp32, int8, u32))
    tensor = k.tensor((rows * grid[0], cols * grid[1]), dtype)
    view: dict[str, Any] = {}
    if choose.yes():
        shape = [choose.number(3, 1) for _ in range(choose.number(2, 1))]
        view = {"shape": shape, "stride": [choose.number((grid[0] * grid[1] - 1) // (2 * n)) for n in shape]}
    ref = k.pick(choose) if k.live and choose.yes(3) else None
    return [ops.linear_offchip_load(tensor, (rows, cols), ref=ref, **view)]


def _gather(k: Kitchen, choose: Choices) -> list[Stream]:
    """Tiles at random addresses."""
    rows, cols, count = choose.one_of((k.tile, 1)), choose.one_of((k.tile, 1, 2 * k.tile)), choose.number(4, 1)
    tensor = k.tensor((rows * count, cols), choose.one_of((bf16, int32)))
    values = [[choose.number(count - 1) for _ in range(choose.number(3))] for _ in range(choose.number(3))]
    shape = (len(values), ragged(k.name("r")))
    addresses = k.input(scalar(u32), shape, TokenStream.from_nested(values, 1, scalar(u32)))
    return [ops.random_offchip_load(addresses, tensor, (rows, cols))]


def _store(k: Kitchen, stream: Stream) -> None:
    """Store what is left over; what was not stored stays zero."""
    if isinstance(stream.type, Selector):
        stream = ops.partition(stream, k.selectors(Choices((1,) * MOST), stream, 0, 1), rank=0, num_consumers=1)[0]
    if isinstance(stream.type, BufferRef):
        stream = ops.streamify(stream, repeat=1)
    if stream.type == scalar(bool_):
        stream = ops.map(fn.cast(dtype="int32"), stream)
    k.taste()
    type_ = stream.type
    assert isinstance(type_, Tile), f"{stream.name} of {type_} has no use"
    rows = int(type_.rows)
    count = int(np.prod(stream.shape)) if all(map(is_static, stream.shape)) else 3 * MOST
    tensor = k.program.tensor(k.name("y"), (rows * max(1, count), int(type_.cols)), type_.dtype)
    ops.linear_offchip_store(stream, tensor)


# Steps: each gives the new live streams


def _is_tile(stream: Stream) -> bool:
    return isinstance(stream.type, Tile)


def _is_scalar(stream: Stream) -> bool:
    return isinstance(stream.type, Tile) and stream.type == scalar(stream.type.dtype)


def _is_float(stream: Stream) -> bool:
    return isinstance(stream.type, Tile) and stream.type.dtype.is_float


def _is_number(stream: Stream) -> bool:
    return stream.type == scalar(u32)


def _unary(k: Kitchen, choose: Choices) -> list[Stream]:
    function = choose.one_of((lambda: fn.scale(constant=2), fn.exp, fn.silu, fn.gelu, fn.sigmoid, fn.rsqrt))
    return [ops.map(function(), k.pick(choose, _is_float))]


def _reduce(k: Kitchen, choose: Choices) -> list[Stream]:
    return [ops.map(choose.one_of((fn.row_sum, fn.row_max))(), k.pick(choose, _is_tile))]


def _cast(k: Kitchen, choose: Choices) -> list[Stream]:
    dtype = choose.one_of(("fp32", "bf16", "int32", "int8", "u32"))
    return [ops.map(fn.cast(dtype=dtype), k.pick(choose, _is_tile))]


def _binary(k: Kitchen, choose: Choices) -> list[Stream]:
    function = choose.one_of((fn.add, fn.sub, fn.mul, fn.max, fn.div))
    stream = k.pick(choose, _is_tile)
    other = k.pick(choose, lambda s: _is_tile(s) and s.rank == stream.rank)
    return [ops.map(function(), stream, other)]


def _is_bf16(stream: Stream) -> bool:
    return isinstance(stream.type, Tile) and stream.type.dtype == bf16


def _weights(k: Kitchen, choose: Choices, stream: Stream) -> tuple[Stream, bool]:
    """A tile that the tiles of ``stream`` can be multiplied by, for each of them, and whether it is transposed."""
    assert isinstance(stream.type, Tile)
    shape = int(stream.type.cols), choose.one_of((k.tile, 1, 2 * k.tile))
    transposed = choose.yes()
    shape = shape[::-1] if transposed else shape
    loaded = ops.linear_offchip_load(k.tensor(shape, bf16), shape, ref=stream, shape=(1,), stride=(1,))
    return ops.flatten(loaded, 0, 1).assume(stream.shape), transposed


def _matmul(k: Kitchen, choose: Choices) -> list[Stream]:
    stream = k.pick(choose, lambda s: _is_bf16(s) and not _is_scalar(s))
    weights, transposed = _weights(k, choose, stream)
    function = fn.matmul(transpose_b=transposed)
    if stream.rank and choose.yes():
        return [_folded(ops.accum(function, stream, weights, rank=choose.number(stream.rank, 1)))]
    return [ops.map(function, stream, weights)]


def _folded(result: Stream) -> Stream:
    # An empty vector between is an element of the result: a dimension of its own.
    return result.assume([d if isinstance(d, int) else ragged(f"q_{result.name}_{i}")
                          for i, d in enumerate(result.shape)])


def _accum(k: Kitchen, choose: Choices) -> list[Stream]:
    stream = k.pick(choose, lambda s: _is_tile(s) and s.rank > 0)
    function = choose.one_of((fn.add, fn.max, fn.mul, fn.row_max, fn.row_sum))
    return [_folded(ops.accum(function(), stream, rank=choose.number(stream.rank, 1)))]


def _scan(k: Kitchen, choose: Choices) -> list[Stream]:
    stream = k.pick(choose, lambda s: _is_tile(s) and s.rank > 0)
    return [ops.scan(choose.one_of((fn.add, fn.max))(), stream, rank=choose.number(stream.rank, 1))]


def _flatten(k: Kitchen, choose: Choices) -> list[Stream]:
    stream = k.pick(choose, lambda s: s.rank > 0)
    low = choose.number(stream.rank - 1)
    return [ops.flatten(stream, low, choose.number(stream.rank, low + 1))]


def _reshape(k: Kitchen, choose: Choices) -> list[Stream]:
    stream = k.pick(choose, _is_tile)
    data, flags = ops.reshape(stream, choose.number(3, 1), dim=choose.one_of((0, 0, 1)),
                              pad=choose.one_of((1, None)))
    return [data, flags] if choose.yes(3) else [data]


def _promote(k: Kitchen, choose: Choices) -> list[Stream]:
    return [ops.promote(k.pick(choose))]


def _repeat(k: Kitchen, choose: Choices) -> list[Stream]:
    return [ops.repeat(k.pick(choose), choose.number(3, 1))]


def _expand(k: Kitchen, choose: Choices) -> list[Stream]:
    stream = k.pick(choose, lambda s: _is_tile(s) and s.rank > 0)
    one = ops.repeat(_folded(ops.accum(fn.max(), stream, rank=1)), 1)
    return [ops.expand(one.assume((*stream.shape[:-1], 1)), stream, rank=1)]


def _ranges(k: Kitchen, choose: Choices) -> list[Stream]:
    """Pairs of numbers become ranges of addresses: the use of a tuple that hardware has."""
    start = k.pick(choose, _is_number)
    count = k.pick(choose, lambda s: _is_number(s) and s.rank == start.rank)
    return [ops.flat_map(fn.address_range(), ops.zip(start, count))]


def _buffered(k: Kitchen, choose: Choices) -> list[Stream]:
    stream = k.pick(choose, _is_tile)
    stream = ops.promote(stream) if stream.rank < 1 else stream
    return [ops.streamify(ops.bufferize(stream, rank=choose.number(stream.rank, 1)), repeat=choose.number(3, 1))]


def _by_reference(k: Kitchen, choose: Choices) -> list[Stream]:
    """Passes over buffers for each element of another stream, or of one with a number of passes for each."""
    stream = k.pick(choose, lambda s: _is_tile(s) and s.rank > 0)
    buffers = ops.bufferize(stream, rank=choose.number(stream.rank, 1))
    k.taste()
    tokens = k.values[buffers.name]
    if buffers.name in k.unsteady or choose.yes():
        return [ops.streamify(buffers, ops.repeat(_ones(k, buffers), choose.number(3, 1)))]
    stop: list[int] = []
    empty: list[bool] = []
    for own, bare in zip(tokens.stop.tolist(), tokens.empty.tolist(), strict=True):
        count = 0 if bare else choose.number(3)
        stop += [0] * max(0, count - 1) + [own + 1]
        empty += [False] * count if count else [True]
    data = np.ones((len(stop) - sum(empty), 1, 1), dtype=np.uint32)
    ref = k.input(scalar(u32), (*buffers.shape, ragged(k.name("r"))),
                  TokenStream(buffers.rank + 1, stop, empty, data))
    return [ops.streamify(buffers, ref)]


def _routed_buffers(k: Kitchen, choose: Choices) -> list[Stream]:
    """Buffers to two or three readers."""
    stream = k.pick(choose, lambda s: _is_tile(s) and s.rank > 0)
    buffers = ops.bufferize(stream, rank=choose.number(stream.rank, 1))
    k.taste()
    rank = choose.number(buffers.rank)
    parts = ops.partition(buffers, k.selectors(choose, buffers, rank, choose.number(3, 2)), rank=rank)
    return [ops.streamify(part, repeat=choose.number(2, 1)) for part in parts]


def _ones(k: Kitchen, stream: Stream) -> Stream:
    """A stream of ones of the structure of ``stream``."""
    if stream.name in k.unsteady:
        raise Unfit
    tokens = k.values[stream.name]
    data = np.ones((tokens.elements, 1, 1), dtype=np.uint32)
    return k.input(scalar(u32), stream.shape, TokenStream(tokens.rank, tokens.stop, tokens.empty, data))


def _count(k: Kitchen, choose: Choices) -> list[Stream]:
    """Numbers become counters, ranges or grids of addresses."""
    stream = k.pick(choose, _is_number)
    function = choose.one_of((fn.counter(), fn.affine_addresses((2,), (1,)), fn.affine_addresses((1, 2), (0, 3))))
    return [ops.flat_map(function, stream)]


def _partition(k: Kitchen, choose: Choices) -> list[Stream]:
    """Chunks to two or three streams."""
    stream = k.pick(choose)
    rank, bits = choose.number(stream.rank), choose.number(3, 2)
    return list(ops.partition(stream, k.selectors(choose, stream, rank, bits), rank=rank))


def _there_and_back(k: Kitchen, choose: Choices) -> list[Stream]:
    """Chunks to two or three streams, something done to one of them, and back by the same selectors."""
    stream = k.pick(choose, _is_tile)
    rank, bits = choose.number(stream.rank), choose.number(3, 2)
    selector = k.selectors(choose, stream, rank, bits, some=rank > 0)
    parts = list(ops.partition(stream, selector, rank=rank))
    for i in range(bits):
        if choose.yes():
            parts[i] = ops.map(fn.max(), parts[i], parts[i])
    return [ops.reassemble(parts, selector, rank=rank)]


def _merge(k: Kitchen, choose: Choices) -> list[Stream]:
    """Two streams in order of arrival; parted again by the merge's selectors, or not."""
    stream = k.pick(choose, _is_tile)
    other = k.pick(choose, lambda s: s.type == stream.type and s.rank == stream.rank)
    if other is stream:
        other = ops.map(fn.max(), stream, stream)
    data, sources = ops.eager_merge([stream, other])
    if choose.yes():
        return [data, *ops.partition(data, sources, rank=data.rank)]
    return [data]


def _merge_parts(k: Kitchen, choose: Choices) -> list[Stream]:
    """Chunks to two streams and together again as they come."""
    stream = k.pick(choose, _is_tile)
    rank = choose.number(stream.rank)
    parts = ops.partition(stream, k.selectors(choose, stream, rank, 2), rank=rank)
    if not all(map(is_static, stream.shape[stream.rank + 1 - rank:])):
        raise Unfit
    data, _ = ops.eager_merge(list(parts))
    return [data]


def _loaded(k: Kitchen, choose: Choices) -> list[Stream]:
    return _load(k, choose)


def _packed(k: Kitchen, choose: Choices) -> list[Stream]:
    """Rows packed into tiles, of as many rows as there are or of a few with padding, something done to each tile, and
    split into rows again."""
    if choose.yes():
        rows = k.pick(choose, lambda s: isinstance(s.type, Tile) and s.type.rows == 1 and not _is_scalar(s))
    else:
        shape = choose.number(5, 1), choose.number(2, 1) * k.tile
        rows = ops.linear_offchip_load(k.tensor(shape, bf16), (1, shape[1]), shape=shape[:1], stride=(1,))
        if choose.yes():
            k.taste()
            rows = ops.partition(rows, k.selectors(choose, rows, 0, 1), rank=0, num_consumers=1)[0]
    flags = None
    if choose.yes():
        rows, flags = ops.reshape(rows, choose.number(2, 1) * k.tile, pad=0)
    elif rows.rank == 0:
        rows = ops.promote(rows)
    tiles = ops.accum(fn.concat_rows(), rows, rank=1)
    if choose.yes():
        tiles = ops.map(fn.max(), tiles, tiles)
    if choose.yes() and _is_float(tiles):
        tiles = ops.map(fn.mul(), tiles, ops.map(fn.cast(dtype=tiles.type.dtype.name), ops.map(fn.row_sum(), tiles)))
    if choose.yes() and _is_bf16(tiles):
        weights, transposed = _weights(k, choose, tiles)
        tiles = ops.map(fn.matmul(transpose_b=transposed), tiles, weights)
    if flags is not None:
        padding = ops.accum(fn.add(), ops.map(fn.cast(dtype="u32"), flags), rank=1)
        tiles = ops.map(fn.set_offset(padding=True), tiles, padding)
    return [ops.flat_map(fn.split_rows(rows=1, drop_padding=True), tiles)]


def _loop(k: Kitchen, choose: Choices) -> list[Stream]:
    """Numbers that go round a loop, one or two at a time, until so many have passed."""
    started = choose.number(2, 1)
    count = started + choose.number(4, 1)
    start = k.input(scalar(u32), (started,), [choose.number(2, 1) for _ in range(started)])
    control = k.input(Selector(2), (1, count), [[{0}] * started + [{1}] * (count - started)])
    keep = k.input(Selector(1), (1, count), [[{0}] * (count - started) + [set()] * started])
    back = ops.feedback(scalar(u32), (ragged(k.name("r")),))
    x = ops.accum(fn.add(), ops.reassemble([start, back], control, rank=0), rank=1)
    for _ in range(choose.number(2)):
        x = choose.one_of((
            lambda: ops.map(fn.add(), x, x),  # noqa: B023
            lambda: ops.accum(fn.add(), ops.repeat(x, 2), rank=1),  # noqa: B023
            lambda: ops.accum(fn.add(), ops.streamify(ops.bufferize(ops.repeat(x, 2), rank=1), repeat=2),  # noqa: B023
                              rank=2)))()
    (again,) = ops.partition(x, keep, rank=0, num_consumers=1)
    back.connect(again)
    return [ops.map(fn.max(), x, x)]


SOURCES: dict[str, Callable[[Kitchen, Choices], list[Stream]]] = {
    "scalars": _scalars, "load": _load, "gather": _gather}
_ALL: dict[str, tuple[Callable[[Kitchen, Choices], list[Stream]], str]] = {
    "unary": (_unary, "map"), "binary": (_binary, "map"), "reduce": (_reduce, "map"), "cast": (_cast, "map"),
    "matmul": (_matmul, "map"), "accum": (_accum, "accum"), "scan": (_scan, "scan"), "flatten": (_flatten, "flatten"),
    "reshape": (_reshape, "reshape"), "promote": (_promote, "promote"), "repeat": (_repeat, "repeat"),
    "expand": (_expand, "expand"), "buffered": (_buffered, "streamify"), "by_reference": (_by_reference, "streamify"),
    "routed_buffers": (_routed_buffers, "partition"), "partition": (_partition, "partition"),
    "there_and_back": (_there_and_back, "reassemble"),
    "merge": (_merge, "eager_merge"), "merge_parts": (_merge_parts, "eager_merge"), "loaded": (_loaded, "map"),
    "packed": (_packed, "pack_rows"), "loop": (_loop, "feedback"), "count": (_count, "flat_map"),
    "ranges": (_ranges, "flat_map"),
}
STEPS = {name: step for name, (step, kind) in _ALL.items() if kind in MAPPERS}
"""Steps by name, of the operators that hardware has."""
if "random_offchip_load" not in MAPPERS:
    del SOURCES["gather"]


def recipes(most_steps: int = 7) -> st.SearchStrategy[Recipe]:
    """Random recipes, for hypothesis."""
    def some(names: Sequence[str], least: int, most: int) -> st.SearchStrategy:
        step = st.tuples(st.sampled_from(sorted(names)), st.lists(st.integers(0, 11), max_size=16).map(tuple))
        return st.lists(step, min_size=least, max_size=most).map(tuple)
    often = [name for name in STEPS if name in ("packed", "routed_buffers", "there_and_back", "matmul")]
    return st.builds(Recipe, some(list(SOURCES), 1, 3), some([*STEPS, *often], 2, most_steps))


# Running


def run(made: Cooked, hw: HardwareConfig, *, simulators: Sequence[str] = ()) -> Outcome:
    """Run ``made`` through interpreter, lowering, unit graph and model, and on RTL on each of ``simulators``."""
    design = Design(made.program, hw, made.inputs)
    tensors = random_tensors(made.program)
    try:
        logical = design.interpret(tensors, lowered=False)
        graph = design.graph
    except StepError as error:
        return Outcome(refused=f"{type(error).__name__}: {error}")
    try:
        prediction = predict(graph, design.hw, trace=True)
    except DeadlockError as error:
        return Outcome(f"DeadlockError: {error}", _same_deadlock(design, tensors, str(error), simulators),
                       rtl=bool(simulators))
    except StepError as error:
        return Outcome("", [f"the program is sound, the model says {error}"])
    grants = prediction.arbitration
    try:
        if design.arbitrates:
            logical = design.interpret(tensors, lowered=False, arbitration=grants)
        lowered = design.interpret(tensors, arbitration=grants)
    except StepError as error:
        return Outcome("", [f"the program is sound, an interpreter says {error}"])
    wrong = [*_lowering(design, logical, lowered), *_traffic(made.program, logical, lowered, prediction),
             *_model(design, lowered, prediction)]
    for simulator in simulators:
        wrong += [f"{simulator}: {text}" for text in _rtl(design, tensors, lowered, logical, prediction, simulator)]
    return Outcome("", wrong, sum(map(len, grants.values())), bool(simulators))


def _lowering(design: Design, logical: Result, lowered: Result) -> list[str]:
    """Every tensor, and every logical stream as its physical ones give it."""
    wrong = [f"tensor '{name}': lowered program vs program" for name, values in logical.tensors.items()
             if values.tobytes() != lowered.tensors[name].tobytes()]
    views = design.lowered.logical_streams(lowered.streams)
    for stream in design.program.streams:
        wrong += [f"stream '{stream.name}': lowered {view} vs {logical.streams[stream.name]}"
                  for view in views.get(stream.name, []) if view != logical.streams[stream.name]]
    return wrong


def _traffic(program: Program, logical: Result, lowered: Result, prediction: Prediction) -> list[str]:
    costs = metrics(program).substitute(logical.symbols)
    counts = {"symbolic": int(costs.offchip_bytes), "interpreter": logical.offchip_bytes,
              "lowered": lowered.offchip_bytes}
    routed = any(op.kind == "reassemble" for op in program.operators)
    if not routed or prediction.offchip_bytes > lowered.offchip_bytes:  # see `_early`
        counts["model"] = prediction.offchip_bytes
    int(costs.onchip_bytes), int(costs.flops)  # have a value
    return [f"off-chip bytes: {counts}"] if len(set(counts.values())) > 1 else []


def _model(design: Design, lowered: Result, prediction: Prediction) -> list[str]:
    """The model's tokens on every link."""
    trace, early = prediction.outcome.trace, _early(design)
    for link in design.graph.links:
        tokens = lowered.streams[link.stream]
        found = (trace[trace[:, 1] == link.index, 2] & 63).tolist()
        wanted = [*(tokens.stop.astype(int) | tokens.empty.astype(int) << 4).tolist(), 3 << 4]
        if found != (wanted[:len(found)] if link.index in early else wanted):
            return [f"link '{link.name}': model {found} vs {wanted}"]
    return []


def _early(design: Design) -> set[int]:
    """Links that lead to an input of a reassemble. A run is over with its last store, and a reassemble passes done on
    when its selectors are done (a loop may need that), so that what no selector chose may still be on its way."""
    units, found = design.graph.units, set()
    todo = [link for unit in units if unit.kind == "reassemble" for link in unit.inputs[:-1]]
    while todo:
        link = todo.pop()
        if link in found:
            continue
        found.add(link)
        source = design.graph.links[link].source
        if source is not None:
            todo += units[source[0]].inputs
    return found


def _rtl(design: Design, tensors: dict[str, np.ndarray], lowered: Result, logical: Result, prediction: Prediction,
         simulator: str) -> list[str]:
    """Values, tokens, traffic, grants, and the cycle of every beat."""
    options: dict[str, Any] = {}
    if simulator == "icarus":
        options["payloads"] = [f"{link.name}_link" for link in design.graph.links]
    run = run_rtl(design, tensors, build_rtl(design, simulator), simulator=simulator, **options)
    wrong = []
    if run.arbitration != prediction.arbitration:
        wrong.append(f"grants: RTL {run.arbitration} vs model {prediction.arbitration}")
    else:
        wrong += _checked(design, run, lowered, logical)
    if run.cycles != prediction.cycles:
        wrong.append(f"cycles: RTL {run.cycles} vs model {prediction.cycles}")
    parted = explain(design, run, prediction, tensors, simulator=simulator)
    return wrong + ([parted.text] if parted.divergences else [])


def _checked(design: Design, run: RtlRun, lowered: Result, logical: Result) -> list[str]:
    """`check`, but for what is allowed to be unfinished (`_early`)."""
    short = {design.graph.links[i].name for i in _early(design)
             if len(run.native.of_link(i)) < len(lowered.streams[design.graph.links[i].stream]) + 1}
    allowed = tuple(f"link '{name}': RTL moved " for name in sorted(short))
    if short:
        allowed = (*allowed, "offchip_read_bytes: ")
    return [text for text in check(design, run, lowered, logical).differences if not text.startswith(allowed)]


def _same_deadlock(design: Design, tensors: dict[str, np.ndarray], said: str, simulators: Sequence[str]) -> list[str]:
    """RTL hangs where the model does, and says the same."""
    wrong = []
    for simulator in simulators:
        try:
            run_rtl(design, tensors, build_rtl(design, simulator), simulator=simulator)
            wrong.append(f"{simulator} ran, the model says {said}")
        except DeadlockError as error:
            if str(error) != said:
                wrong.append(f"{simulator} says {error}\nthe model says {said}")
    return wrong


