"""A random program as it grows, one step after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from examples.data import random_tensor, random_tensors
from step_lang import DType, Numerics, Program, Selector, Stream, TokenStream, ops
from step_lang.cycles import components, run_cycle
from step_lang.errors import StepError
from step_lang.interpreter import Context

from .recipe import Choices, Recipe, Unfit

__all__ = ["MOST", "Cooked", "Kitchen", "cook"]

MOST = 40
"""Elements that a stream of a random program has at most."""


@dataclass
class Cooked:
    """The program of a recipe, with the values of its input streams."""

    recipe: Recipe
    program: Program
    inputs: dict[str, Any]
    special: frozenset[str] = frozenset()
    """Tensors with NaN, infinities, subnormal and extreme numbers among their elements."""

    @property
    def tensors(self) -> dict[str, np.ndarray]:
        """Contents of the tensors that the program reads."""
        found = random_tensors(self.program)
        return {name: _extremes(values) if name in self.special else values for name, values in found.items()}

    def __str__(self) -> str:
        steps = "\n".join(f"  {op.name}({', '.join(s.name for s in op.inputs)}) {op.describe()} -> "
                          f"{', '.join(f'{list(s.shape)} of {s.type}' for s in op.outputs)}"
                          for op in self.program.operators)
        inputs = "\n".join(f"  {name} = {tokens!r}" for name, tokens in self.inputs.items())
        return f"{self.recipe}\n{steps}\n{inputs}"


def _extremes(values: np.ndarray) -> np.ndarray:
    """``values`` with an extreme number in every third place."""
    if np.issubdtype(values.dtype, np.integer):
        whole = np.iinfo(values.dtype)
        extremes: list[Any] = [whole.max, whole.min]
    else:
        limits = ml_dtypes.finfo(values.dtype)
        extremes = [np.inf, np.nan, limits.smallest_subnormal, -0.0, -np.inf, limits.max, limits.smallest_normal]
    made = values.copy().reshape(-1)
    made[::3] = np.resize(np.array(extremes).astype(values.dtype), len(made[::3]))
    return made.reshape(values.shape)


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
        self.special: set[str] = set()
        self._context = Context(Numerics(group=tile), {}, self.inputs, {})
        self._seen = 0
        self._count = 0

    def name(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def tensor(self, shape: tuple[int, int], dtype: DType, *, special: bool = False) -> Any:
        """A tensor with contents; ``special``: extreme numbers among them."""
        tensor = self.program.tensor(self.name("t"), shape, dtype)
        values = random_tensor(tensor.name, shape, dtype)
        if special and dtype.name in ("bf16", "fp32", "int8", "int32"):
            self.special.add(tensor.name)
            values = _extremes(values)
        self._context.tensors[tensor.name] = values
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
    from .steps import SOURCES, STEPS, store

    left_out: set[int] = set()
    while True:
        kitchen = Kitchen(tile)
        at = 0
        try:
            with kitchen.program:
                for at, (name, numbers) in enumerate((*recipe.sources, *recipe.steps)):
                    if at in left_out:
                        continue
                    step = SOURCES[name] if at < len(recipe.sources) else STEPS[name]
                    made = step(kitchen, Choices(numbers))
                    kitchen.taste()
                    kitchen.live += made
                for stream in [s for s in kitchen.program.streams if not s.consumers and not s.optional]:
                    store(kitchen, stream)
                kitchen.program.check()
                return Cooked(recipe, kitchen.program, kitchen.inputs, frozenset(kitchen.special))
        except (StepError, Unfit):
            left_out.add(at)  # the one at fault, or the last where storing failed; begin anew without it
