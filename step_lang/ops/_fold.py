"""What accum and scan share: folding groups of elements, each into a state that is a whole tensor of elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

from ..dims import Shape, format_shape, is_static
from ..errors import BadParameter, StreamProtocolError, UnknownFunction
from ..fn.base import Function
from ..stream import Stream
from ..tokens import Data, TokenStream, data_pack, data_take, data_type, pass_stops
from ._call import MAX_ELEMENTS_AT_ONCE, CallOperator

__all__ = ["FoldOperator", "Groups"]


@dataclass(frozen=True)
class Groups:
    """Where each element of a stream goes: its group, its position in the state and its step in the fold."""

    group: np.ndarray
    position: np.ndarray
    step: np.ndarray
    close: np.ndarray
    """Stop of the beat that closes each group."""


class FoldOperator(CallOperator):
    """Folds ``rank`` dimensions above the ``inner`` innermost ones (DESIGN section 6)."""

    def __init__(self, fn: Function, streams: Sequence[Stream], rank: int, init: Any, inner: int, compute_bw: Any,
                 name: str | None):
        self.rank, self.init, self.inner = rank, init, inner
        super().__init__(fn, streams, compute_bw, name)

    def check_fold(self) -> tuple[Any, Any]:
        """Check parameters; return state type and the number of elements folded at each position."""
        types = self.check_call()
        stream = self.inputs[0]
        self.rank, self.inner = self.positive("rank", self.rank), self.positive("inner", self.inner, 0)
        if not self.fn.foldable:
            raise UnknownFunction(f"function {self.fn!r} vs one that {self.kind} can fold", operator=self)
        if self.rank + self.inner > stream.rank:
            raise BadParameter(f"rank + inner: {self.rank} + {self.inner} vs the stream's rank {stream.rank}",
                               operator=self, fix="promote the stream, or fold fewer dimensions")
        at = len(stream.shape) - self.inner
        self.inner_shape = stream.shape[at:]
        if self.inner > 2 or not all(is_static(dim) and dim > 0 for dim in self.inner_shape):
            raise BadParameter(f"inner dimensions: {format_shape(self.inner_shape)} vs at most two static ones",
                               operator=self)
        self.positions = int(np.prod(self.inner_shape)) if self.inner else 1
        folded = stream.shape[at - self.rank:at]
        count = sympy.Mul(*folded)
        return self.fn.state_type(*types, count=count), count

    @property
    def folded_shape(self) -> Shape:
        """The shape without the folded dimensions."""
        shape = self.inputs[0].shape
        at = len(shape) - self.inner
        return shape[:at - self.rank] + shape[at:]

    def ready(self, inputs: Sequence[TokenStream], done: Sequence[bool]) -> list[int]:
        common = min(map(len, inputs))
        closes = np.flatnonzero(inputs[0].stop[:common] >= self.rank + self.inner)
        return [int(closes[-1]) + 1 if len(closes) else 0] * len(inputs)

    def groups(self, tokens: TokenStream) -> Groups:
        """Sort elements into groups. Raises `StreamProtocolError` where inner stops are not where they must be."""
        top = self.rank + self.inner
        closes = tokens.stop >= top
        group: np.ndarray = (np.cumsum(closes) - closes)[~tokens.empty]
        sizes = np.bincount(group, minlength=int(closes.sum())).astype(np.int64)
        within = np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        position, step = within % self.positions, within // self.positions
        if self.inner:
            self._check_inner(tokens, position, sizes)
        return Groups(group, position, step, tokens.stop[closes].astype(np.int64))

    def _check_inner(self, tokens: TokenStream, position: np.ndarray, sizes: np.ndarray) -> None:
        expected = pass_stops(self.inner_shape)[position]
        actual = tokens.stop[~tokens.empty]
        wrong = np.flatnonzero(np.minimum(actual, self.inner) != expected)
        if len(wrong):
            i = int(wrong[0])
            raise StreamProtocolError(f"element {i}: stop {int(actual[i])} vs {int(expected[i])} at position "
                                      f"{int(position[i])} of inner shape {format_shape(self.inner_shape)}",
                                      operator=self)
        if (sizes % self.positions).any() or (tokens.empty & (tokens.stop <= self.inner)).any():
            raise StreamProtocolError(f"an incomplete inner tensor vs inner shape {format_shape(self.inner_shape)}",
                                      operator=self)

    def initial_states(self, count: int, datas: Sequence[Data]) -> np.ndarray:
        """``count`` initial states ``[count, rows, cols]``."""
        return np.repeat(self._initial_for(datas), count, axis=0)

    def fold(self, ctx: Any, datas: Sequence[Data], groups: Groups, states: np.ndarray,
             every: np.ndarray | None = None) -> np.ndarray:
        """Fold all elements into ``states`` (indexed by group, then position) and return them. With ``every``, an
        array for one state an element, also keep the state after each element there."""
        order = np.argsort(groups.step, kind="stable")
        slot = groups.group * self.positions + groups.position
        bounds = np.concatenate([[0], np.cumsum(np.bincount(groups.step))]).astype(np.int64)
        largest = max(int(np.prod(data.shape[1:])) for data in (*datas, states))
        budget = max(1, MAX_ELEMENTS_AT_ONCE // largest)
        first = 0
        while first < len(bounds) - 1:
            # As many steps as fit the budget have their parallel part done at once.
            last = first + 1
            while last < len(bounds) - 1 and bounds[last + 1] - bounds[first] <= budget:
                last += 1
            chosen = order[bounds[first]:bounds[last]]
            parts = self.fn.contribution(ctx.numerics, *(data_take(data, chosen) for data in datas))
            for t in range(first, last):
                lo, hi = bounds[t] - bounds[first], bounds[t + 1] - bounds[first]
                at = slot[chosen[lo:hi]]
                states[at] = self.fn.combine(ctx.numerics, states[at], parts[lo:hi])
                if every is not None:
                    every[chosen[lo:hi]] = states[at]
            first = last
        return states

    def fold_varying(self, ctx: Any, datas: Sequence[Data], groups: Groups, count: int) -> tuple[Data, Data]:
        """As `fold` for tiles of varying size, or states that grow: states, and states after each element."""
        slot = groups.group * self.positions + groups.position
        members: list[list[int]] = [[] for _ in range(count)]
        for element in np.argsort(groups.step, kind="stable").tolist():
            members[slot[element]].append(element)
        states: list[np.ndarray] = []
        every: list[np.ndarray] = [np.zeros(0)] * len(slot)
        types = [stream.type for stream in self.inputs]
        for chosen in members:
            if self.fn.grows:
                states.append(self.fn.fold_all(ctx.numerics, [datas[0][i][None] for i in chosen])[0] if chosen
                              else np.asarray(self.fn.initial(self.init, *types)))
                continue
            state = None
            for i in chosen:
                arrays = [data[i][None] for data in datas]
                if state is None:
                    state = self._initial_for(arrays)
                state = self.fn.combine(ctx.numerics, state, self.fn.contribution(ctx.numerics, *arrays))
                every[i] = state[0]
            states.append(np.asarray(self.fn.initial(self.init, *types)) if state is None else state[0])
        return data_pack(states), data_pack(every)

    def _initial_for(self, arrays: Sequence[np.ndarray]) -> np.ndarray:
        """Initial state ``[1, rows, cols]`` for tiles of the actual size of ``arrays``."""
        types = [data_type(array, stream.type) if len(array) else stream.type
                 for array, stream in zip(arrays, self.inputs)]
        return np.asarray(self.fn.initial(self.init, *types))[None]

    def fold_uniform(self, datas: Sequence[Data]) -> bool:
        return not self.fn.grows and all(isinstance(data, np.ndarray) for data in datas)

    def onchip(self) -> Any:
        types = [stream.type for stream in self.inputs]
        state = self.output.type.nbytes
        own = self.fn.onchip(*types, accum=True)
        first = own if own != 0 else state
        return first + (self.positions - 1) * state

    def describe(self) -> str:
        return f"{self.fn} rank {self.rank}" + (f" inner {self.inner}" if self.inner else "")
