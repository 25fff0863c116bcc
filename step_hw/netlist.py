"""From a unit graph to Verilog: one module per distinct unit, one instance per unit and link, and their registers.

Ports of the top module (L links, in the order of `UnitGraph.links`)
-------------------------------------------------------------------
============================================ ===================================================================
``clk``, ``rst``                             clock, synchronous reset
``cfg_valid, cfg_addr[16], cfg_data[32]``    register writes, before ``start``
``start``                                    one cycle high: the run begins
``finished``                                 every store has seen done and handed its last burst to the memory
``error_any``                                some unit's sticky error code is not 0
``status_addr[16], status_data[32]``         status words, in the same cycle
``probe_valid[L], probe_ready[L]``           each link's write side: a beat enters link i where both bits i are 1
``probe_stop[4L], probe_empty[L], probe_done[L]``  of that beat
``unit_state[..]``                           all units' ``state``, at ``state_offsets``
``grant_valid[A], grant_index[8A]``          only with A > 0 units that arbitrate: unit i begins to serve its input
                                             ``grant_index[8i +: 8]`` in this cycle
``mem_busy``                                 the memory system works
``dump``                                     a cycle of 1: the memory's contents are written to files
============================================ ===================================================================
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

from amaranth.hdl import Cat, ClockSignal, Instance, Module, ResetSignal, Signal, UnusedElaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from step_lang.mapping import REGISTERS
from step_lang.unitgraph import UnitGraph, UnitSpec

from .beat import STOP_WIDTH
from .configbank import ADDRESS_WIDTH, WORD, ConfigBank, Field, StatusBank, assign_addresses
from .instances import attachments, make_link, make_unit
from .keywords import KEYWORDS
from .unit import ERROR_WIDTH, ErrorCode, Unit
from .verilog import module_text

__all__ = ["Netlist", "Verilog", "build_netlist", "manifest", "register_image"]

# Of the many equal units of a graph one is converted; the others only say how they are wired.
warnings.simplefilter("ignore", UnusedElaboratable)

COUNTERS = ("cycle", "read_bytes", "write_bytes", "first_read_cycle", "last_write_cycle")
"""Status values of the memory system, besides ``bursts<channel>``."""

GRANT_WIDTH = 8
"""Bits of an input's number in ``grant_index``."""


@dataclass(frozen=True)
class Verilog:
    """The Verilog of a netlist.

    files : file name to text, one module a file, the top last; modules : module names in that order
    top : name of the top module
    register_map, status_map : name to `Field`; names are ``<unit>.<register>``, and ``<unit>.error``, ``<unit>.state``,
        ``<link>.level`` (beats in it), ``hbm.<counter>``, ``<scratchpad>.used`` and ``.peak`` (pages),
        ``<bufferize>.filled`` (elements of the open buffer) and ``.waits``
    token_memories : name of an input unit to the first address of its token memory
    link_names, unit_names : in the order of the probe ports and of ``unit_state``
    state_offsets : unit name to (lowest bit, width) in ``unit_state``
    arbiter_names : units that arbitrate, in the order of ``grant_valid``
    """

    files: Mapping[str, str]
    top: str
    modules: tuple[str, ...]
    register_map: Mapping[str, Field]
    status_map: Mapping[str, Field]
    token_memories: Mapping[str, int]
    link_names: tuple[str, ...]
    unit_names: tuple[str, ...]
    state_offsets: Mapping[str, tuple[int, int]]
    arbiter_names: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """All modules in one file."""
        return "\n".join(self.files.values())


class Netlist(wiring.Component):
    """The top module of ``graph``; see the module's docstring for its ports."""

    def __init__(self, graph: UnitGraph):
        self.graph = graph
        self.units = [make_unit(spec, graph) for spec in graph.units]
        self.links = [make_link(index, graph) for index in range(len(graph.links))]
        for spec, unit in zip(graph.units, self.units):
            _check_registers(spec, unit)
        self.registers = assign_addresses([
            (f"{spec.name}.{register}", width)
            for spec, unit in zip(graph.units, self.units) for register, width in unit.cfg_widths.items()])
        self.status = assign_addresses(self._status_fields())
        # Token memories lie behind the registers, each at a multiple of its size.
        self.token_memories: dict[str, int] = {}
        address = sum(field.words for field in self.registers)
        for spec, unit in zip(graph.units, self.units):
            if spec.kind == "input":
                address = -(-address // unit.tokens) * unit.tokens
                self.token_memories[spec.name] = address
                address += unit.tokens
        if address > 1 << ADDRESS_WIDTH:
            raise ValueError(f"{address} words of configuration do not fit {ADDRESS_WIDTH} address bits")
        self.state_offsets: dict[str, tuple[int, int]] = {}
        offset = 0
        for spec, unit in zip(graph.units, self.units):
            self.state_offsets[spec.name] = (offset, len(unit.state))
            offset += len(unit.state)
        self.arbiters = [spec for spec, unit in zip(graph.units, self.units) if "grant_valid" in unit.signature.members]
        granting = len(self.arbiters)
        count = max(1, len(self.links))
        super().__init__({
            "cfg_valid": In(1), "cfg_addr": In(ADDRESS_WIDTH), "cfg_data": In(WORD),
            "start": In(1), "finished": Out(1), "error_any": Out(1),
            "status_addr": In(ADDRESS_WIDTH), "status_data": Out(WORD),
            "probe_valid": Out(count), "probe_ready": Out(count), "probe_stop": Out(STOP_WIDTH * count),
            "probe_empty": Out(count), "probe_done": Out(count), "unit_state": Out(max(1, offset)),
            "mem_busy": Out(1), "dump": In(1),
        } | ({"grant_valid": Out(granting), "grant_index": Out(GRANT_WIDTH * granting)} if granting else {}))

    @property
    def module_name(self) -> str:
        return f"{self.graph.name}_top"

    @property
    def about(self) -> str:
        """What the head of the top's Verilog says: ports, and where each unit and link is in them."""
        graph, ports = self.graph, (__doc__ or "").splitlines()[4:-1]
        width = ports.pop(0).index(" ")
        lines = [f"Program '{graph.name}' on tiles of {graph.tile} x {graph.tile}: L = {len(graph.links)} links.", ""]
        lines += [f"{line[:width].replace('`', ''):{width}}{line[width:].replace('`', '')}" for line in ports]
        lines += ["", "Links (bits of probe_valid, probe_ready, ..):"]
        lines += [f"  {i}: {link.name}" for i, link in enumerate(graph.links)]
        lines += ["", "Units (lowest bit and width in unit_state; kind; module):"]
        for spec, unit in zip(graph.units, self.units):
            offset, bits = self.state_offsets[spec.name]
            lines.append(f"  {offset} +{bits}: {spec.name}; {spec.kind}; {unit.module_name}")
        return "\n".join(lines)

    def _status_fields(self) -> list[tuple[str, int]]:
        fields = []
        for spec, unit in zip(self.graph.units, self.units):
            fields += [(f"{spec.name}.error", ERROR_WIDTH), (f"{spec.name}.state", len(unit.state))]
            names = {"hbm": (*COUNTERS, *(f"bursts{c}" for c in range(_channels(spec)))),
                     "scratchpad": ("used", "peak"), "bufferize": ("filled", "waits")}.get(spec.kind, ())
            fields += [(f"{spec.name}.{name}", len(getattr(unit, name))) for name in names]
        return fields + [(f"{link.name}.level", len(fifo.state)) for link, fifo in zip(self.graph.links, self.links)]

    def elaborate(self, platform):
        m = Module()
        graph = self.graph
        nets = _Nets(graph)
        for unit, its, other, others in attachments(graph):
            nets.attach((unit, its), (other, others))
        # One set of wires for each port of each unit, whoever is at the other end.
        wires = [nets.of_unit(spec, unit) for spec, unit in zip(graph.units, self.units)]
        link_wires = [nets.of_link(index, graph) for index in range(len(graph.links))]

        taken = {*KEYWORDS, *self.signature.members, "clk", "rst", "registers", "status_words"}
        m.submodules.registers = config = ConfigBank(self.registers)
        m.submodules.status_words = status = StatusBank(self.status)
        m.d.comb += [
            config.valid.eq(self.cfg_valid), config.addr.eq(self.cfg_addr), config.data.eq(self.cfg_data),
            status.addr.eq(self.status_addr), self.status_data.eq(status.data),
        ]
        for spec, unit, ports in zip(graph.units, self.units, wires):
            for register in unit.cfg_widths:
                m.d.comb += ports["cfg", register].eq(getattr(config, f"{spec.name}__{register}"))
            for name in ("start", "dump"):
                if (name,) in ports:
                    m.d.comb += ports[name,].eq(getattr(self, name))
            if spec.kind == "input":
                first = self.token_memories[spec.name]
                size = unit.tokens.bit_length() - 1
                m.d.comb += [
                    ports["token_write",].eq(self.cfg_valid & (self.cfg_addr[size:] == first >> size)),
                    ports["token_address",].eq(self.cfg_addr[:size]),
                    ports["token_data",].eq(self.cfg_data),
                ]
            self._instance(m, taken, spec.name, unit, ports)
        for link, fifo, ports in zip(graph.links, self.links, link_wires):
            self._instance(m, taken, f"{link.name}_link", fifo, ports)

        values = {f"{spec.name}.{path[0]}": wire
                  for spec, ports in zip(graph.units, wires) for path, wire in ports.items()}
        values |= {f"{link.name}.level": ports["state",] for link, ports in zip(graph.links, link_wires)}
        m.d.comb += [getattr(status, field.port).eq(values[field.name]) for field in self.status]
        errors = [ports["error",] for ports in wires]
        done = [ports["finished",] for spec, ports in zip(graph.units, wires) if spec.is_sink]
        payloads = [fifo.in0.payload.shape()(ports["in0", "payload"]) for fifo, ports in zip(self.links, link_wires)]
        m.d.comb += [
            self.error_any.eq(Cat(errors).any()),
            self.finished.eq(Cat(done).all()),
            self.unit_state.eq(Cat(ports["state",] for ports in wires)),
            self.probe_valid.eq(Cat(ports["in0", "valid"] for ports in link_wires)),
            self.probe_ready.eq(Cat(ports["in0", "ready"] for ports in link_wires)),
            self.probe_stop.eq(Cat(payload.stop for payload in payloads)),
            self.probe_empty.eq(Cat(payload.empty for payload in payloads)),
            self.probe_done.eq(Cat(payload.done for payload in payloads)),
        ]
        for i, spec in enumerate(self.arbiters):
            ports = wires[spec.index]
            index = self.grant_index.word_select(i, GRANT_WIDTH)
            m.d.comb += [self.grant_valid[i].eq(ports["grant_valid",]), index.eq(ports["grant_index",])]
        m.d.comb += [self.mem_busy.eq(ports["busy",]) for spec, ports in zip(graph.units, wires) if spec.kind == "hbm"]
        return m

    def _instance(self, m: Module, taken: set[str], name: str, unit: Unit, ports: Mapping[tuple, Signal]) -> None:
        """An instance of the module of ``unit``, called ``name`` where that is not taken."""
        given = {f"{_direction(member)}_{'__'.join(map(str, path))}": ports[tuple(map(str, path))]
                 for path, member, _ in unit.signature.flatten(unit)}
        if _is_clocked(_modules(unit)[unit.module_name]):
            given |= {"i_clk": ClockSignal(), "i_rst": ResetSignal()}
        while name in taken:
            name += "_"
        taken.add(name)
        m.submodules[name] = Instance(unit.module_name, **given)


class _Nets:
    """Wires by (unit, interface, rest of the path); all ends of a connection get the same ones."""

    def __init__(self, graph: UnitGraph) -> None:
        self._names = [spec.name for spec in graph.units]
        self._other: dict[tuple[int, str], tuple[int, str]] = {}
        self._wires: dict[tuple, Signal] = {}

    def attach(self, a: tuple[int, str], b: tuple[int, str]) -> None:
        """The interfaces ``a`` and ``b`` are one bundle, named after ``a``."""
        self._other[b] = a

    def _wire(self, key: tuple, width: int, name: str) -> Signal:
        if key not in self._wires:
            self._wires[key] = Signal(width, name=name)
        return self._wires[key]

    def of_unit(self, spec: UnitSpec, unit: Unit) -> dict[tuple[str, ...], Signal]:
        """Port path to wire."""
        ports = {}
        for path, _, value in unit.signature.flatten(unit):
            path = tuple(map(str, path))
            stream = re.fullmatch(r"(in|out)(\d+)", path[0])
            if stream:
                links = spec.inputs if stream[1] == "in" else spec.outputs
                key: tuple = ("link", links[int(stream[2])], "out0" if stream[1] == "in" else "in0", path[1])
                name = f"{spec.name}__{'__'.join(path)}"
            else:
                end = self._other.get((spec.index, path[0]), (spec.index, path[0]))
                key = (*end, *path[1:])
                name = "__".join((self._names[end[0]], end[1], *path[1:]))
            width = len(value.as_value() if hasattr(value, "as_value") else value)
            ports[path] = self._wire(key, width, name)
        return ports

    def of_link(self, index: int, graph: UnitGraph) -> dict[tuple[str, ...], Signal]:
        """Port path to wire of a link's FIFO."""
        fifo, name = make_link(index, graph), graph.links[index].name
        ports = {}
        for path, _, value in fifo.signature.flatten(fifo):
            path = tuple(map(str, path))
            width = len(value.as_value() if hasattr(value, "as_value") else value)
            ports[path] = self._wire(("link", index, *path), width, f"{name}_link__{'__'.join(path)}")
        return ports


def _direction(member: wiring.Member) -> str:
    return "i" if member.flow == In else "o"


def _channels(spec: UnitSpec) -> int:
    return spec.params["memory"].channels if spec.kind == "hbm" else 0


def _is_clocked(text: str) -> bool:
    """Whether the module, the last in ``text`` or the first, has a clock port."""
    return re.search(r"^\s*input clk\b", text, re.M) is not None


_CONVERTED: dict[str, dict[str, str]] = {}


def _modules(unit: Unit) -> dict[str, str]:
    """`Unit.modules`, converted once for each module name: the name says all that the text depends on."""
    if unit.module_name not in _CONVERTED:
        _CONVERTED[unit.module_name] = unit.modules()
    return _CONVERTED[unit.module_name]


def _check_registers(spec: UnitSpec, unit: Unit) -> None:
    """A difference between the mapping's registers and the hardware's is a defect of ours."""
    stated = REGISTERS.get(spec.kind, {})
    built = {name: width for name, width in unit.cfg_widths.items() if name in stated or name not in spec.config}
    if built != dict(stated) or set(spec.config) != set(unit.cfg_widths):
        raise AssertionError(f"registers of unit '{spec.name}' ({spec.kind}): hardware has {unit.cfg_widths}, "
                             f"the unit graph sets {dict(spec.config)}, step_lang.mapping states {dict(stated)}")


def build_netlist(graph: UnitGraph) -> Verilog:
    """Verilog of ``graph``: the same text for graphs that differ in register contents only."""
    netlist = Netlist(graph)
    modules: dict[str, str] = {}
    for unit in [*netlist.units, *netlist.links]:
        modules |= _modules(unit)
    modules[netlist.module_name] = module_text(netlist, netlist.module_name)
    return Verilog(
        files={f"{name}.v": text for name, text in modules.items()},
        top=netlist.module_name,
        modules=tuple(modules),
        register_map={field.name: field for field in netlist.registers},
        status_map={field.name: field for field in netlist.status},
        token_memories=netlist.token_memories,
        link_names=tuple(link.name for link in graph.links),
        unit_names=tuple(unit.name for unit in graph.units),
        state_offsets=netlist.state_offsets,
        arbiter_names=tuple(spec.name for spec in netlist.arbiters),
    )


def register_image(graph: UnitGraph, verilog: Verilog) -> list[tuple[int, int]]:
    """(address, data) writes that configure the netlist for ``graph``: its registers, then its token memories."""
    writes: list[tuple[int, int]] = []
    for spec in graph.units:
        for register, value in spec.config.items():
            writes += verilog.register_map[f"{spec.name}.{register}"].writes(value)
        if spec.kind == "input":
            first = verilog.token_memories[spec.name]
            writes += [(first + i, token) for i, token in enumerate(spec.params["tokens"])]
    return writes


def manifest(graph: UnitGraph, verilog: Verilog) -> str:
    """JSON that says what is at which address, bit and index, for people and for test benches."""
    document = {
        "program": graph.name, "tile": graph.tile, "top": verilog.top, "modules": list(verilog.modules),
        "registers": {name: {"address": f.address, "width": f.width} for name, f in verilog.register_map.items()},
        "status": {name: {"address": f.address, "width": f.width} for name, f in verilog.status_map.items()},
        "arbiters": list(verilog.arbiter_names),
        "token_memories": dict(verilog.token_memories),
        "error_codes": {name: code for name, code in vars(ErrorCode).items() if name.isupper()},
        "units": [{
            "name": unit.name, "kind": unit.kind, "origin": unit.origin,
            "state": {"offset": verilog.state_offsets[unit.name][0], "width": verilog.state_offsets[unit.name][1]},
            "config": dict(unit.config),
        } for unit in graph.units],
        "links": [{
            "name": link.name, "data_bits": link.payload.data_bits, "max_rows": link.payload.max_rows,
            "depth": link.depth, "type": str(link.payload.type),
            "source": graph.units[link.source[0]].name if link.source else None,
            "destination": graph.units[link.destination[0]].name if link.destination else None,
        } for link in graph.links],
        "tensors": [{
            "name": t.name, "base": t.base, "nbytes": t.nbytes, "element_bytes": t.element_bytes, "grid": list(t.grid),
            "type": str(t.type), "is_input": t.is_input,
        } for t in graph.tensors.values()],
        "warnings": list(graph.warnings),
    }
    return json.dumps(document, indent=1) + "\n"
