"""The unit graph under construction."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

from step_lang.errors import ConfigError, DeadlockError, HardwareTooSmall, ProgramError, TypeMismatch
from step_lang.hwconfig import HardwareConfig
from step_lang.operator import Operator
from step_lang.program import Program, Tensor
from step_lang.stream import Stream
from step_lang.tokens import TokenStream
from step_lang.types import BufferRef, Selector, Tile, Tuple, Type
from step_lang.unitgraph import LinkSpec, Payload, TensorPlacement, UnitGraph, UnitSpec

from .references import Family, family_of
from .registers import GENERATION_WIDTH, REGISTERS, STOP_WIDTH
from .scratchpads import check_uses

__all__ = ["Builder", "element_bytes", "hardware_type", "payload_of"]


def hardware_type(type_: Type, hw: HardwareConfig) -> Type:
    """``type_`` as wires are built for it: a physical tile of fewer or dynamic rows has room for T, and says how many
    it has."""
    if isinstance(type_, Tuple):
        return Tuple(tuple(hardware_type(member, hw) for member in type_.members))
    if isinstance(type_, Tile) and type_.rows != 1:
        return Tile(hw.tile, type_.cols, type_.dtype)
    return type_


def payload_of(type_: Type, hw: HardwareConfig, owners: int = 1) -> Payload:
    """What a link carries for elements of ``type_``; the payload's type is the `hardware_type`. ``owners``: scratchpads
    that a reference may be of."""
    type_ = hardware_type(type_, hw)
    if isinstance(type_, Tile):
        return Payload(int(type_.rows) * int(type_.cols) * type_.dtype.bits, int(type_.rows), type_)
    if isinstance(type_, Selector):
        return Payload(type_.n, 1, type_)
    if isinstance(type_, BufferRef):
        number = max(1, (hw.references - 1).bit_length())
        return Payload(number + GENERATION_WIDTH + (owners - 1).bit_length(), 1, type_)
    assert isinstance(type_, Tuple)
    members = [payload_of(member, hw) for member in type_.members]
    return Payload(sum(m.data_bits for m in members), max(m.max_rows for m in members), type_)


def element_bytes(payload: Payload) -> int:
    """Bytes of an element in memory: a power of two."""
    size = 1
    while 8 * size < payload.data_bits:
        size *= 2
    return size


class Builder:
    """Collects units and who reads and writes which stream; `finish` adds forks and links."""

    def __init__(self, program: Program, hw: HardwareConfig, inputs: Mapping[str, TokenStream]):
        self.program = program
        self.hw = hw
        self.inputs = inputs
        self.graph = UnitGraph([], [], tile=hw.tile, name=program.name, memory=hw.memory)
        self.read_ports: list[tuple[int, int]] = []
        self.write_ports: list[int] = []
        self.scratchpads: dict[str, int] = {}   # bufferize's name to the scratchpad's unit index
        self._sources: dict[str, tuple[int, int]] = {}
        self._uses: dict[str, list[tuple[int, int]]] = {}
        self._same: dict[str, Stream] = {}      # a feedback's stream to the one that is fed back
        self._families: dict[str, Family] = {}
        self._next_address = 0

    # Units

    def unit(self, kind: str, name: str, op: Operator | None = None, params: Mapping[str, Any] | None = None,
             config: Mapping[str, int] | None = None, is_sink: bool = False) -> UnitSpec:
        """Add a unit; ``config`` is checked against the registers' widths. Raises `HardwareTooSmall`."""
        config = dict(config or {})
        for register, value in config.items():
            width = REGISTERS.get(kind, {}).get(register)
            if width is not None and not 0 <= value < 1 << width:
                raise HardwareTooSmall(f"register '{register}' of unit '{name}': {value} vs at most {(1 << width) - 1}",
                                       operator=op, fix="use smaller tiles, counts or ranks")
        index = len(self.graph.units)
        path, _, line = (op.source if op else "").rpartition(":")
        origin = f"{op.name} ({os.path.basename(path)}:{line})" if op else ""
        spec = UnitSpec(index, kind, name, [], [], dict(params or {}), config, is_sink, origin)
        self.graph.units.append(spec)
        return spec

    def connect(self, unit: UnitSpec, inputs: list[Stream], outputs: list[Stream]) -> None:
        """``unit`` reads ``inputs`` and writes ``outputs``, by port."""
        for port, stream in enumerate(inputs):
            self._uses.setdefault(stream.name, []).append((unit.index, port))
        for port, stream in enumerate(outputs):
            if stream.rank >= 1 << STOP_WIDTH:
                raise HardwareTooSmall(f"stream '{stream.name}': rank {stream.rank} vs at most {(1 << STOP_WIDTH) - 1}",
                                       operator=stream.producer, fix="flatten outer dimensions")
            self._sources[stream.name] = (unit.index, port)

    def alias(self, stream: Stream, source: Stream) -> None:
        """``stream`` is ``source`` on other links: a feedback, which takes no hardware of its own."""
        self._same[stream.name] = source

    def warn(self, op: Operator, text: str) -> None:
        """Note something that will work, but slowly."""
        path, _, line = op.source.rpartition(":")
        self.graph.warnings.append(f"{op.kind} '{op.name}' ({os.path.basename(path)}:{line}): {text}")

    def payload(self, stream: Stream) -> Payload:
        if isinstance(stream.type, BufferRef):
            return payload_of(stream.type, self.hw, len(self.family(stream).bufferizes))
        return payload_of(stream.type, self.hw)

    def family(self, stream: Stream) -> Family:
        """See `family_of`."""
        if stream.name not in self._families:
            self._families[stream.name] = family_of(stream)
        return self._families[stream.name]

    # Off-chip memory

    def place(self, tensor: Tensor, type_: Tile, grid: tuple[int, int], op: Operator) -> TensorPlacement:
        """Address of ``tensor``, stored as tiles of ``type_``. Raises `ProgramError` where it is already stored as
        other tiles, `HardwareTooSmall` where it does not fit the memory."""
        size = element_bytes(payload_of(type_, self.hw))
        found = self.graph.tensors.get(tensor.name)
        if found is None:
            return self._allocate(tensor.name, grid, size, type_, False, op)
        if found.type != type_:
            raise ProgramError(f"tensor '{tensor.name}' in physical tiles of {found.type} vs {type_}", operator=op,
                               fix="use tiles that lower to the same physical tiles, or two tensors")
        return found

    def place_input(self, stream: Stream, count: int, op: Operator) -> TensorPlacement:
        """Address of the ``count`` elements that the host gives for an input stream."""
        size = element_bytes(self.payload(stream))
        return self._allocate(stream.name, (max(1, count), 1), size, stream.type, True, op)

    def _allocate(self, name: str, grid: tuple[int, int], size: int, type_: Type, is_input: bool,
                  op: Operator) -> TensorPlacement:
        if type_.nbytes != size:  # metrics and interpreter count by the type, hardware by what it moves
            raise TypeMismatch(f"elements of '{name}', {type_}: {type_.nbytes} bytes by their type vs {size} as the "
                               "hardware keeps them, bits packed, a power of two", operator=op,
                               fix="keep it in elements of another size off-chip, such as int8 for bool, and cast")
        line = self.hw.memory.alignment
        per_line = self.hw.memory.layout(size).per_line
        bursts = self.hw.memory.layout(size).bursts
        lines = -(-grid[0] * grid[1] // per_line) * bursts
        placement = TensorPlacement(name, self._next_address, lines * line, size, grid, type_, is_input)
        self._next_address += lines * line
        if self._next_address > self.hw.memory.capacity_bytes:
            raise HardwareTooSmall(
                f"off-chip memory for '{name}': {self._next_address} bytes vs {self.hw.memory.capacity_bytes}",
                operator=op, fix="raise memory.capacity_bytes in the hardware configuration")
        self.graph.tensors[name] = placement
        return placement

    # Links

    def finish(self) -> UnitGraph:
        """Forks where a stream has several consumers, and all links."""
        graph = self.graph
        fed_back = self._fed_back()
        for stream in self.program.streams:
            if stream.name not in self._sources:    # an optional output that nobody uses, or a feedback
                continue
            # Links that close a loop have the feedback's name, by which its author knows the loop.
            named = [(stream, use) for use in self._uses.get(stream.name, [])]
            loops = [(loop, self._uses.get(loop.name, [])) for loop in fed_back.get(stream.name, [])]
            named += [(loop, use) for loop, its in loops for use in its]
            uses = [use for _, use in named]
            source = self._sources[stream.name]
            if len(uses) == 1:
                self._link(named[0][0].name, named[0][0], source, uses[0])
                continue
            fork = self.unit("fork", f"{stream.name}_fork", stream.producer, {"n": len(uses)})
            self._link(stream.name, stream, source, (fork.index, 0))
            readers = [index for index, _ in uses]
            alone = {loop.name for loop, its in loops if len(its) == 1}
            for port, (via, (reader, its_port)) in enumerate(named):
                name = via.name if via.name in alone else f"{via.name}__to__{graph.units[reader].name}"
                if readers.count(reader) > 1 and via.name not in alone:
                    name += f"_in{its_port}"
                self._link(name, via, (fork.index, port), (reader, its_port))
        check_uses(graph)
        names = [link.name for link in graph.links]
        for name in self.hw.link_depths:
            if name not in names:
                raise ConfigError(f"key 'link.depths.{name}': no such link vs {', '.join(names)}")
        return graph

    def _fed_back(self) -> dict[str, list[Stream]]:
        """Feedback streams by the name of the stream that comes out of them in the end."""
        found: dict[str, list[Stream]] = {}
        for name, source in self._same.items():
            seen = {name}
            while source.name in self._same:
                if source.name in seen:
                    raise DeadlockError("loop without an initial token: a feedback that is fed by itself vs at least "
                                        "one operator in the loop", operator=source.producer)
                seen.add(source.name)
                source = self._same[source.name]
            found.setdefault(source.name, []).append(next(s for s in self.program.streams if s.name == name))
        return found

    def _link(self, name: str, stream: Stream, source: tuple[int, int], destination: tuple[int, int]) -> None:
        index = len(self.graph.links)
        depth = self.hw.link_depths.get(name, self.hw.link_depth)
        whole = all(isinstance(dim, int) and dim > 0 for dim in stream.shape)
        self.graph.links.append(LinkSpec(index, name, self.payload(stream), depth, source, destination, stream.name,
                                         math.prod(stream.shape) if whole else None))
        outputs, inputs = self.graph.units[source[0]].outputs, self.graph.units[destination[0]].inputs
        for ports, port in ((outputs, source[1]), (inputs, destination[1])):
            ports.extend([-1] * (port + 1 - len(ports)))
            ports[port] = index
