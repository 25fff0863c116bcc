"""A program as a graph of units at tile fidelity: one for each operator, a fork where a stream has several consumers,
a drain where it has none, and the off-chip memory; and everything that they need to run, as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from step_lang.errors import TensorError, TypeMismatch, UnknownFunction
from step_lang.operator import Operator
from step_lang.program import Program, Tensor
from step_lang.stream import Stream
from step_lang.types import Selector, Tile, Tuple

from ..selectors import pack_selectors
from ..values import _is_integer
from .capacity import check_ranks
from .cost import COSTS
from .machine import Machine, Plan
from .memory import SharedMemory, list_ports, make_memory
from .network import DONE, EMPTY, NO_VALUE, Tiles, make_tiles

__all__ = ["TileGraph", "tile_graph"]

PARAMETERS, STATE = 64, 16


@dataclass
class TileGraph:
    """Units and channels. ``operators``: of each unit its operator, None for forks and the memory; ``names`` for
    messages; ``channels``: stream of each channel; ``records``: of each bufferize its record on the heap;
    ``most_slices``, ``buckets``: slices of work and points of curves that a recorded run keeps."""

    program: Program
    machine: Machine
    kinds: list[str]
    names: list[str]
    operators: list[Operator | None]
    par: np.ndarray
    ins: np.ndarray
    outs: np.ndarray
    heap: np.ndarray
    cost: np.ndarray
    capacities: np.ndarray
    ends: np.ndarray
    channels: list[Stream]
    traced: np.ndarray
    memory: SharedMemory
    records: dict[int, int]
    state_words: int
    most_slices: int = 1 << 18
    buckets: int = 1 << 12

    def network(self, record: bool = False) -> Tiles:
        """A network with nothing in it yet; with ``record`` it has room for what happens when."""
        return make_tiles(self.capacities, self.ends, self.traced, len(self.kinds), self.heap.copy(), self.cost,
                          trace_size=1 << 16, grants=1 << 12, nodes=1 << 12, buffers=1 << 8,
                          slices=max(self.most_slices, 4 * len(self.kinds)) if record else 0,
                          buckets=self.buckets if record else 0)


@dataclass
class _Builder:
    """What a unit's ``pack`` may ask for."""

    program: Program
    machine: Machine
    host: Mapping[str, Any]
    par: np.ndarray
    cost: np.ndarray
    plan: Plan
    memory: SharedMemory = field(init=False)
    ports: dict[bool, list[int]] = field(default_factory=lambda: {False: [], True: []})
    records: dict[int, int] = field(default_factory=dict)
    _size: int = 0
    _parts: list[tuple[int, np.ndarray]] = field(default_factory=list)
    _bases: dict[str, int] = field(default_factory=dict)
    _placed: int = 0

    @property
    def live_buffers(self) -> int:
        return self.machine.live_buffers

    def reserve(self, n: int, values: Any = None) -> int:
        """Offset of ``n`` words of the heap, preset to ``values``."""
        at = self._size
        self._size += int(n)
        if values is not None:
            self.preset(at, values)
        return at

    def preset(self, at: int, values: Any) -> None:
        """Words of the heap before the run."""
        self._parts.append((at, np.array([int(v) for v in np.asarray(values).ravel()], dtype=np.int64)
                            if not isinstance(values, np.ndarray) else values.astype(np.int64)))

    def word(self, at: int) -> int:
        """What a word is preset to."""
        return next(int(values[at - start]) for start, values in reversed(self._parts)
                    if start <= at < start + len(values))

    def heap(self) -> np.ndarray:
        made = np.zeros(max(1, self._size), dtype=np.int64)
        for at, values in self._parts:
            made[at:at + len(values)] = values
        return made

    def consumers(self, stream: Stream) -> list[Operator]:
        return stream.consumers

    def place(self, nbytes: int) -> int:
        """Address of ``nbytes`` off-chip, at a line of all channels."""
        line = self.memory.config.alignment
        at = self._placed
        self._placed += -(-nbytes // line) * line
        return at

    def place_tensor(self, tensor: Tensor) -> int:
        """Address of a tensor."""
        if tensor.name not in self._bases:
            self._bases[tensor.name] = self.place(int(np.prod(tensor.shape)) * int(tensor.dtype.bytes))
        return self._bases[tensor.name]

    def window(self, type_: Any) -> int:
        """Tiles of a load or store in flight."""
        return self.machine.window(type_)

    def elements(self, op: Any, stream: Stream, grid: Sequence[Any] | None) -> tuple[int, int, list[int] | None]:
        """Physical tiles of a tile of ``stream``, where the tensor's grid of tiles lies (`sim.tile.memory`), and what
        `make_port` is told of their order; (0, 0, None) on a machine that has none. Raises `TypeMismatch` for
        physical tiles that no memory has, by the operator ``op`` that moves them."""
        order = self.machine.element_order(stream, self.plan)
        if order is None:
            return 0, 0, None
        nbytes, down, across, by_columns = order
        if nbytes & (nbytes - 1):
            of = f"tensor '{op.tensor.name}'" if hasattr(op, "tensor") else f"stream '{stream.name}'"
            raise TypeMismatch(f"{of}, {stream.type}: {nbytes} bytes of a physical tile vs a power of two", operator=op,
                               fix="use tiles whose rows and columns are multiples of tile.size, or powers of two")
        row = int(grid[1]) if grid is not None else 1
        at = self.reserve(3, [row, down, across])
        inner = [down, row * across, 1] if by_columns else [across, 1, row * across]
        return down * across, at, [nbytes, *inner]

    def host_tokens(self, op: Any) -> np.ndarray:
        """Tokens and control values ``[n, 2]`` of an input stream, done included."""
        if op.name not in self.host:
            raise TensorError(f"values of input stream: missing vs shape {list(op.shape)} of {op.type}", operator=op,
                              fix="pass them in streams, by the stream's name")
        given = op.tokens(self.host[op.name])
        tokens = np.zeros((len(given) + 1, 2), dtype=np.int64)
        tokens[:-1, 0] = given.stop.astype(np.int64) | np.where(given.empty, EMPTY, 0)
        tokens[:-1, 1][~given.empty] = self._values(op.type, given.data)
        tokens[-1, 0] = EMPTY | DONE
        return tokens

    def _values(self, type_: Any, data: Any) -> np.ndarray:
        if isinstance(type_, Selector):
            bits = [sum(1 << int(k) for k in np.flatnonzero(row)) for row in data]
            return np.array(pack_selectors(self, bits, type_.n), dtype=np.int64)
        if isinstance(type_, Tuple) and len(type_.members) == 2 and all(map(_is_integer, type_.members)):
            low, high = (self._values(member, part) for member, part in zip(type_.members, data))
            return low | (high << 32)
        if isinstance(type_, Tile) and _is_integer(type_):
            return np.asarray(data).reshape(-1).astype(np.int64) & ((1 << type_.dtype.bits) - 1)
        length = len(data[0]) if isinstance(data, tuple) else len(data)
        return np.full(length, NO_VALUE)


def tile_graph(program: Program, machine: Machine, streams: Mapping[str, Any] | None = None) -> TileGraph:
    """Units, channels and parameters of ``program`` on ``machine``; ``streams``: what the host provides.

    Raises a `StepError` for what the model does not know, by operator.
    """
    from .engine import operator_modules

    check_ranks(program)
    modules = operator_modules()
    kinds, names, operators = [], [], []
    unit_of: dict[str, int] = {}

    def add(kind: str, name: str, op: Operator | None) -> int:
        kinds.append(kind)
        names.append(name)
        operators.append(op)
        return len(kinds) - 1

    for op in program.operators:
        if op.kind not in modules:
            raise UnknownFunction(f"{op.kind} vs an operator that the model knows at tile fidelity", operator=op,
                                  fix="give it the program before lowering")
        unit_of[op.name] = add(op.kind, op.name, op)
    forks: dict[str, tuple[int, Stream]] = {}
    drains: dict[str, int] = {}
    for stream in program.streams:
        if len(stream.consumers) > 1:
            forks[stream.name] = (add("fork", f"{stream.name}_fork", None), stream)
        elif not stream.consumers:
            drains[stream.name] = add("drain", f"{stream.name}_unused", None)
    memory_unit = add("hbm", "hbm", None)

    n = len(kinds)
    builder = _Builder(program, machine, streams or {}, np.zeros((n, PARAMETERS), dtype=np.int64),
                       np.zeros((n, COSTS), dtype=np.int64), machine.plan(program))
    width = max([1, *(max(len(op.inputs), len(op.outputs)) for op in program.operators),
                 *(len(stream.consumers) for _, stream in forks.values())])
    ins, outs = np.full((n, width), -1, dtype=np.int64), np.full((n, width), -1, dtype=np.int64)
    channels: list[Stream] = []
    ends: list[tuple[int, int]] = []
    traced: list[int] = []
    numbers = {stream.name: i for i, stream in enumerate(program.streams)}

    def connect(stream: Stream, source: tuple[int, int], sink: tuple[int, int], trace: bool) -> None:
        outs[source], ins[sink] = len(channels), len(channels)
        channels.append(stream)
        ends.append((source[0], sink[0]))
        traced.append(numbers[stream.name] if trace else -1)

    ports: dict[str, list[tuple[int, int]]] = {}
    for op in program.operators:
        for k, stream in enumerate(op.inputs):
            ports.setdefault(stream.name, []).append((unit_of[op.name], k))
    for stream in program.streams:
        source = (unit_of[stream.producer.name], stream.index)
        sinks = ports.get(stream.name, [])
        if stream.name in forks:
            fork = forks[stream.name][0]
            connect(stream, source, (fork, 0), True)
            for k, sink in enumerate(sinks):
                connect(stream, (fork, k), sink, False)
        else:
            connect(stream, source, sinks[0] if sinks else (drains[stream.name], 0), True)

    builder.memory = make_memory(machine.memory, memory_unit, n, machine.grain, machine.has_elements, builder)
    for tensor in program.tensors.values():
        builder.place_tensor(tensor)
    # In the order of lowering, which is that of the memory's ports and of the places of input streams.
    order = [unit_of[op.name] for op in program.topological()]
    for u in [*order, *range(len(order), n)]:
        kind, maker = kinds[u], operators[u]
        machine.pack_cost(maker, kind, builder.plan, builder.cost[u])
        subject: Any = maker
        if kind == "fork":
            subject = next(stream for unit, stream in forks.values() if unit == u)
        modules[kind].pack(subject, u, builder)
    list_ports(builder.memory, builder)
    capacities = np.array([machine.capacity(stream.type) for stream in channels], dtype=np.int64)
    words = STATE + max((len(o.inputs) + len(o.outputs) for o in program.operators), default=0) // 32 + 1
    return TileGraph(program, machine, kinds, names, operators, builder.par, ins, outs, builder.heap(), builder.cost,
                     capacities, np.array(ends, dtype=np.int64).reshape(-1, 2), channels,
                     np.array(traced, dtype=np.int64), builder.memory, builder.records, words)
