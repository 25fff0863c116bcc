"""What accum and scan share: folding groups of elements, each into a state that is a whole tensor of elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

from ..dims import Ragged, Shape, buffer_elements, buffer_symbol, format_shape, is_ragged, is_static
from ..errors import BadParameter, StreamProtocolError, UnknownFunction
from ..fn.base import Function
from ..stream import Stream
from ..tokens import Data, TokenStream, data_pack, data_take, data_type, pass_stops
from ..types import Tile, Type
from ._call import MAX_ELEMENTS_AT_ONCE, CallOperator, shape_classes

__all__ = ["FoldOperator", "Groups"]

_NONE = Ragged("none")
"""Stands for a size of 0, which no tile type has, where a state's type is inferred from actual sizes."""


@dataclass(frozen=True)
class Groups:
    """Where each element of a stream goes: the state it is folded into, and when."""

    slot: np.ndarray
    """State of each element; those of a group are numbered by position, group after group."""
    step: np.ndarray
    """How many elements were folded into the same state before it."""
    close: np.ndarray
    """Stop of the beat that closes each group."""
    sizes: np.ndarray
    """States of each group; 0 where it leaves as a bare stop."""

    @property
    def count(self) -> int:
        """States of all groups."""
        return int(self.sizes.sum())


class FoldOperator(CallOperator):
    """Folds ``rank`` dimensions above the ``inner`` innermost ones (DESIGN section 6)."""

    may_be_open = False
    """Whether the outermost inner dimension may be one that is not static: each group's first tensor says its size."""

    def __init__(self, fn: Function, streams: Sequence[Stream], rank: int, init: Any, inner: int, compute_bw: Any,
                 name: str | None, hollow: bool = False):
        self.rank, self.init, self.inner, self.hollow = rank, init, inner, hollow
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
        if not isinstance(self.hollow, bool):
            raise BadParameter(f"hollow: {self.hollow!r} vs a bool", operator=self)
        at = len(stream.shape) - self.inner
        self.inner_shape = stream.shape[at:]
        static = self.inner_shape[1:] if self.may_be_open else self.inner_shape
        if self.inner > 2 or not all(is_static(dim) for dim in static) or 0 in self.inner_shape:
            allowed = "two, the inner one static" if self.may_be_open else "two static ones"
            raise BadParameter(f"inner dimensions: {format_shape(self.inner_shape)} vs at most {allowed}",
                               operator=self)
        self.is_open = self.inner > 0 and not is_static(self.inner_shape[0])
        self.row = int(self.inner_shape[1]) if self.inner == 2 else 1
        self.positions = 0 if self.is_open else int(np.prod(self.inner_shape)) if self.inner else 1
        folded = stream.shape[at - self.rank:at]
        count = sympy.Mul(*folded)
        if self.init is not None:
            self.fn.initial(self.init, *types)  # raises for what the state cannot be
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
        close = tokens.stop[closes].astype(np.int64)
        group: np.ndarray = (np.cumsum(closes) - closes)[~tokens.empty]
        counts = np.bincount(group, minlength=len(close)).astype(np.int64)
        if self.is_open:
            position, step, sizes = self._open_positions(tokens, group, counts)
        else:
            within = np.arange(len(group)) - np.repeat(np.cumsum(counts) - counts, counts)
            position, step = within % self.positions, within // self.positions
            sizes = np.where((counts == 0) & self.hollow, 0, self.positions)
            lost = np.flatnonzero((sizes == 0) & (close == self.rank))
            if len(lost) and not self.inner:
                raise StreamProtocolError(f"group {int(lost[0])}: no element, and nothing closes with it, vs a group "
                                          "that is left out with the vector it is all of", operator=self,
                                          fix="leave out hollow where folded dimensions may be 0")
            if self.inner:
                self._check_inner(tokens, position, counts)
        return Groups((np.cumsum(sizes) - sizes)[group] + position, step, close, sizes)

    def _check_inner(self, tokens: TokenStream, position: np.ndarray, counts: np.ndarray) -> None:
        expected = pass_stops(self.inner_shape)[position]
        self._check_stops(tokens, position, expected)
        if (counts % self.positions).any() or (tokens.empty & (tokens.stop <= self.inner)).any():
            raise self._incomplete()

    def _check_stops(self, tokens: TokenStream, position: np.ndarray, expected: np.ndarray) -> None:
        actual = tokens.stop[~tokens.empty]
        wrong = np.flatnonzero(np.minimum(actual, self.inner) != expected)
        if len(wrong):
            i = int(wrong[0])
            raise StreamProtocolError(f"element {i}: stop {int(actual[i])} vs {int(expected[i])} at position "
                                      f"{int(position[i])} of inner shape {format_shape(self.inner_shape)}",
                                      operator=self)

    def _incomplete(self) -> StreamProtocolError:
        return StreamProtocolError(f"an incomplete inner tensor vs inner shape {format_shape(self.inner_shape)}",
                                   operator=self)

    def _open_positions(self, tokens: TokenStream, group: np.ndarray,
                        counts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Position and step of each element, and states of each group, where the stops say how long a tensor is."""
        stop = tokens.stop[~tokens.empty]
        ends = stop >= self.inner
        tensor = np.cumsum(ends) - ends
        lengths = np.bincount(tensor).astype(np.int64)
        position = np.arange(len(tensor)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        if self.inner == 2:
            row_ends = position % self.row == self.row - 1
            self._check_stops(tokens, position, np.where(row_ends, np.where(ends, 2, 1), 0))
        before = np.concatenate([[self.inner], tokens.stop[:-1]])
        if (tokens.empty & ((tokens.stop <= self.inner) | (before < self.inner))).any():
            raise self._incomplete()
        owner = group[ends]                      # group of each tensor
        tensors = np.bincount(owner, minlength=len(counts))
        first = np.cumsum(tensors) - tensors     # number of each group's first tensor
        empty = np.flatnonzero(tensors == 0)
        if len(empty) and not self.hollow:
            raise StreamProtocolError(f"group {int(empty[0])}: no element vs at least one, which gives the size of "
                                      f"inner shape {format_shape(self.inner_shape)}", operator=self,
                                      fix="fold streams without empty groups, or with static inner dimensions")
        sizes = np.zeros(len(counts), dtype=np.int64)
        sizes[tensors > 0] = lengths[first[tensors > 0]]
        wrong = np.flatnonzero(lengths != sizes[owner])
        if len(wrong):
            k = int(wrong[0])
            g = int(owner[k])
            raise StreamProtocolError(
                f"tensor {k - int(first[g])} of group {g}: {int(lengths[k])} elements vs {int(sizes[g])} of the "
                f"group's first, inner shape {format_shape(self.inner_shape)}", operator=self,
                fix="elements that are folded into one state come in tensors of one size")
        return position, tensor - first[group], sizes

    def initial_states(self, count: int, datas: Sequence[Data]) -> np.ndarray:
        """``count`` initial states ``[count, rows, cols]``."""
        return np.repeat(self._initial_for(datas), count, axis=0)

    def fold(self, ctx: Any, datas: Sequence[Data], slot: np.ndarray, step: np.ndarray, states: np.ndarray,
             every: np.ndarray | None = None) -> np.ndarray:
        """Fold all elements into ``states`` (``slot`` and ``step`` as in `Groups`) and return them. With ``every``, an
        array for one state an element, also keep the state after each element there."""
        order = np.argsort(step, kind="stable")
        bounds = np.concatenate([[0], np.cumsum(np.bincount(step))]).astype(np.int64)
        largest = max(1, *(int(np.prod(data.shape[1:])) for data in (*datas, states)))
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

    def fold_varying(self, ctx: Any, datas: Sequence[Data], groups: Groups) -> tuple[Data, Data]:
        """As `fold` for tiles of varying size, or states that grow: states, and states after each element."""
        states: list[np.ndarray] = [np.zeros(0)] * groups.count
        every: list[np.ndarray] = [np.zeros(0)] * len(groups.slot)
        rest = np.zeros(groups.count, dtype=bool)
        if self.fn.grows:
            rest[groups.slot] = True
        else:
            self._fold_alike(ctx, datas, groups, states, every, rest)
        members: dict[int, list[int]] = {slot: [] for slot in np.flatnonzero(rest).tolist()}
        for element in np.argsort(groups.step, kind="stable").tolist():
            if rest[groups.slot[element]]:
                members[int(groups.slot[element])].append(element)
        for slot in np.flatnonzero(np.bincount(groups.slot, minlength=groups.count) == 0).tolist():
            states[slot] = self._empty_state()
        for slot, chosen in members.items():
            if self.fn.grows:
                states[slot] = self.fn.fold_all(ctx.numerics, [datas[0][i][None] for i in chosen])[0]
            else:
                states[slot] = self._fold_mixed(ctx, datas, chosen, every)
        return data_pack(states), data_pack(every)

    def _empty_state(self) -> np.ndarray:
        """What a group without elements leaves: of a state that grows as many initial tiles as its static type has."""
        state = np.asarray(self.fn.initial(self.init, *(stream.type for stream in self.inputs)))
        type_ = self.output.type
        if self.fn.grows and isinstance(type_, Tile) and type_.is_static:
            state = np.tile(state, (int(type_.rows) // state.shape[0], int(type_.cols) // state.shape[1]))
        return state

    def _fold_alike(self, ctx: Any, datas: Sequence[Data], groups: Groups, states: list[np.ndarray],
                    every: list[np.ndarray], rest: np.ndarray) -> None:
        """Fold at once what is folded from elements of one shape; mark the other states in ``rest``."""
        classes = shape_classes(datas)
        shape = np.zeros(len(groups.slot), dtype=np.int64)
        for k, chosen in enumerate(classes):
            shape[chosen] = k
        least = np.full(groups.count, len(classes), dtype=np.int64)
        np.minimum.at(least, groups.slot, shape)
        rest[groups.slot[shape != least[groups.slot]]] = True
        for k in range(len(classes)):
            chosen = np.flatnonzero((shape == k) & ~rest[groups.slot])
            if not len(chosen):
                continue
            slots, local = np.unique(groups.slot[chosen], return_inverse=True)
            arrays = [data_take(data, chosen) for data in datas]
            folded = self.initial_states(len(slots), arrays)
            after = np.zeros((len(chosen), *folded.shape[1:]), dtype=folded.dtype)
            self.fold(ctx, arrays, local, groups.step[chosen], folded, after)
            for slot, state in zip(slots.tolist(), folded):
                states[slot] = state
            for element, state in zip(chosen.tolist(), after):
                every[element] = state

    def _fold_mixed(self, ctx: Any, datas: Sequence[Data], chosen: Sequence[int],
                    every: list[np.ndarray]) -> np.ndarray:
        """The state folded from the elements ``chosen``, one by one. Raises `StreamProtocolError` where one of them is
        of a size that makes another state."""
        state = self._initial_for([data[chosen[0]][None] for data in datas])
        for i in chosen:
            arrays = [data[i][None] for data in datas]
            size = self._initial_for(arrays).shape[1:]
            if size != state.shape[1:] and not self.fn.resizes:
                raise StreamProtocolError(f"element {i}: folded into a state of {size[0]} x {size[1]} vs one of "
                                          f"{state.shape[1]} x {state.shape[2]} in its group", operator=self,
                                          fix="elements that are folded into one state have one size")
            state = self.fn.combine(ctx.numerics, state, self.fn.contribution(ctx.numerics, *arrays))
            every[i] = state[0]
        return state[0]

    def _initial_for(self, arrays: Sequence[np.ndarray]) -> np.ndarray:
        """Initial state ``[1, rows, cols]`` for tiles of the actual size of ``arrays``."""
        types = [_actual(array, stream.type) if len(array) else stream.type
                 for array, stream in zip(arrays, self.inputs)]
        state = np.asarray(self.fn.initial(self.init, *types))[None]
        made = self.fn.state_type(*types)
        if isinstance(made, Tile):
            if made.rows == _NONE:
                state = state[:, :0]
            if made.cols == _NONE:
                state = state[:, :, :0]
        return state

    def fold_uniform(self, datas: Sequence[Data], groups: Groups) -> bool:
        """Whether all states are of one size. That of a group without elements has a size of its own, 1 where its type
        says that there are many."""
        type_ = self.output.type
        apart = isinstance(type_, Tile) and (is_ragged(type_.rows) or is_ragged(type_.cols))
        return (not self.fn.grows and all(isinstance(data, np.ndarray) for data in datas)
                and not (apart and len(np.unique(groups.slot)) < groups.count))

    def onchip(self) -> Any:
        types = [stream.type for stream in self.inputs]
        state = self.output.type.nbytes
        own = self.fn.onchip(*types, accum=True)
        first = own if own != 0 else state
        return first + (buffer_elements(self.inner_shape) - 1) * state

    def measure(self, values: Sequence[TokenStream], bound: dict[sympy.Symbol, int]) -> None:
        if self.is_open and is_ragged(self.inner_shape[0]):
            tokens, symbol = values[0], buffer_symbol(self.inner_shape[:1])
            ends = np.flatnonzero(tokens.stop >= self.inner)
            sizes = np.diff(np.concatenate([[0], np.cumsum(~tokens.empty)[ends]])) // self.row
            bound[symbol] = max(bound.get(symbol, 0), int(sizes.max(initial=0)))

    def describe(self) -> str:
        return (f"{self.fn} rank {self.rank}" + (f" inner {self.inner}" if self.inner else "")
                + (" hollow" if self.hollow else ""))


def _actual(array: np.ndarray, type_: Type) -> Type:
    """``type_`` with the tile size of ``array``, 0 as `_NONE`."""
    if isinstance(type_, Tile) and 0 in array.shape[1:]:
        rows, cols = (size or _NONE for size in array.shape[1:])
        return Tile(rows, cols, type_.dtype)
    return data_type(array, type_)
