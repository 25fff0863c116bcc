"""From a unit of the unit graph to the hardware unit with its elaboration parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from step_lang.errors import UnknownFunction
from step_lang.unitgraph import UnitGraph, UnitSpec

from .beat import BeatLayout
from .hbm.system import MemorySystem
from .link import LinkFIFO
from .unit import Unit
from .units.accum import Accum
from .units.bufferize import Bufferize
from .units.eager_merge import EagerMerge
from .units.expand import Expand
from .units.flat_map import FlatMap
from .units.flatten import Flatten
from .units.fork import Fork
from .units.input import Input
from .units.load import Load
from .units.map import Map
from .units.pack_rows import PackRows
from .units.partition import Partition
from .units.promote import Promote
from .units.random_load import RandomLoad
from .units.random_store import RandomStore
from .units.reassemble import Reassemble
from .units.repeat import Repeat
from .units.reshape import Reshape
from .units.scan import Scan
from .units.scratchpad import Scratchpad, ScratchpadShape
from .units.store import Store
from .units.streamify import Streamify
from .units.trim_rows import TrimRows
from .units.unpack_rows import UnpackRows
from .units.zip import Zip

__all__ = ["Attachment", "attachments", "make_link", "make_unit"]


class _Context:
    """What a maker sees: the unit's parameters and the layouts of its links."""

    def __init__(self, spec: UnitSpec, graph: UnitGraph):
        self.params = spec.params
        self.inputs = [_layout(graph, link) for link in spec.inputs]
        self.outputs = [_layout(graph, link) for link in spec.outputs]
        self.graph = graph

    def take(self, *names: str) -> dict:
        """The named parameters."""
        return {name: self.params[name] for name in names}

    def scratchpads(self) -> ScratchpadShape:
        """Shape of the scratchpads that a reader or router is at."""
        first, _ = self.params["ports"][0]
        return replace(_scratchpad_shape(self.graph.units[first]), owners=len(self.params["ports"]))

    def scratchpad(self) -> ScratchpadShape:
        """Shape of the scratchpads of which a bufferize fills one."""
        return replace(_scratchpad_shape(self.graph.units[self.params["scratchpad"]]), owners=self.params["owners"])


def _layout(graph: UnitGraph, link: int) -> BeatLayout:
    payload = graph.links[link].payload
    return BeatLayout(payload.data_bits, payload.max_rows)


def _scratchpad_shape(spec: UnitSpec) -> ScratchpadShape:
    p, payload = spec.params, spec.params["payload"]
    layout = BeatLayout(payload.data_bits, payload.max_rows)
    return ScratchpadShape(p["frames"], p["page_frames"], p["references"], layout, uses_bits=p["uses_bits"])


_COMPUTE = ("tile", "rows_per_cycle", "k_per_cycle")

_MAKERS: dict[str, Callable[[_Context, UnitSpec], Unit]] = {
    "load": lambda c, s: Load(c.outputs[0], reference=c.inputs[0] if c.params["ref"] else None,
                              **c.take("memory", "element_bytes", "window")),
    "input": lambda c, s: Input(c.outputs[0], tokens=c.params["token_memory"],
                                **c.take("memory", "element_bytes", "window")),
    "store": lambda c, s: Store(c.inputs[0], **c.take("memory", "element_bytes")),
    "random_load": lambda c, s: RandomLoad(c.outputs[0], address=c.inputs[0],
                                           **c.take("memory", "element_bytes", "window")),
    "random_store": lambda c, s: RandomStore(*c.inputs, acknowledges=bool(s.outputs),
                                             **c.take("memory", "element_bytes")),
    "flat_map": lambda c, s: FlatMap(c.params["function"], c.inputs[0]),
    "hbm": lambda c, s: MemorySystem(c.params["memory"], c.params["read_ports"], c.params["write_ports"]),
    "scratchpad": lambda c, s: Scratchpad(_scratchpad_shape(s), c.params["readers"], c.params["routers"]),
    "bufferize": lambda c, s: Bufferize(c.scratchpad(), s.params["owner"]),
    "streamify": lambda c, s: Streamify(c.scratchpads(), c.inputs[1] if c.params["has_ref"] else None),
    "map": lambda c, s: Map(c.params["function"], c.params["in_types"], c.params["out_type"],
                            **c.take(*_COMPUTE, "masked")),
    "accum": lambda c, s: Accum(c.params["function"], c.params["in_types"], c.params["out_type"],
                                **c.take(*_COMPUTE, "entries", "init", "masked")),
    "scan": lambda c, s: Scan(c.params["function"], c.params["in_types"], c.params["out_type"],
                              **c.take(*_COMPUTE, "entries", "init", "masked")),
    "fork": lambda c, s: Fork(c.inputs[0], c.params["n"]),
    "zip": lambda c, s: Zip(c.inputs),
    "flatten": lambda c, s: Flatten(c.inputs[0]),
    "promote": lambda c, s: Promote(c.inputs[0]),
    "repeat": lambda c, s: Repeat(c.inputs[0]),
    "expand": lambda c, s: Expand(c.inputs[0], c.inputs[1], *(
        (c.scratchpads(), *c.params["uses"]) if "ports" in c.params else ())),
    "reshape": lambda c, s: Reshape(c.inputs[0], **c.take("pad", "pad_rows", "flags")),
    "partition": lambda c, s: Partition(c.inputs[0], c.inputs[1].data_width, len(s.outputs),
                                        *((c.scratchpads(), c.params["uses"]) if "ports" in c.params else ())),
    "reassemble": lambda c, s: Reassemble(c.inputs[0], c.inputs[-1].data_width, len(s.inputs) - 1),
    "pack_rows": lambda c, s: PackRows(c.inputs[0], c.outputs[0], **c.take("columns")),
    "unpack_rows": lambda c, s: UnpackRows(c.inputs[0], c.outputs[0], **c.take("columns")),
    "trim_rows": lambda c, s: TrimRows(c.inputs[0], c.outputs[0]),
    "eager_merge": lambda c, s: EagerMerge(c.inputs[0], len(s.inputs), **c.take("selector")),
}


def make_unit(spec: UnitSpec, graph: UnitGraph) -> Unit:
    """The hardware unit of ``spec``. Raises `UnknownFunction` for a kind without hardware."""
    if spec.kind not in _MAKERS:
        raise UnknownFunction(f"unit '{spec.name}' of kind '{spec.kind}' ({spec.origin}) vs those with hardware: "
                              f"{', '.join(sorted(_MAKERS))}")
    return _MAKERS[spec.kind](_Context(spec, graph), spec)


def make_link(index: int, graph: UnitGraph) -> LinkFIFO:
    """The FIFO of link ``index``."""
    return LinkFIFO(_layout(graph, index), graph.links[index].depth)


_MEMORY_PORTS = {"load": "read", "input": "read", "random_load": "read", "store": "write", "random_store": "write"}

Attachment = tuple[int, str, int, str]
"""(unit, its interface, unit, its interface): two interfaces that are one bundle of wires, besides the links. The first
may be in several."""


def attachments(graph: UnitGraph) -> list[Attachment]:
    """Memory ports and scratchpad ports, and the read data, which all loads share."""
    found: list[Attachment] = []
    memory = next((unit.index for unit in graph.units if unit.kind == "hbm"), None)
    for spec in graph.units:
        if spec.kind in _MEMORY_PORTS and memory is not None:
            found.append((spec.index, "mem", memory, f"{_MEMORY_PORTS[spec.kind]}{spec.params['port']}"))
            if _MEMORY_PORTS[spec.kind] == "read":
                found.append((memory, "data", spec.index, "data"))
        elif spec.kind == "bufferize":
            found.append((spec.index, "port", spec.params["scratchpad"], "write"))
        elif "ports" in spec.params:
            side, ports = "read" if spec.kind == "streamify" else "route", spec.params["ports"]
            names = ["port"] if len(ports) == 1 else [f"port{k}" for k in range(len(ports))]
            found += [(spec.index, name, pad, f"{side}{port}") for name, (pad, port) in zip(names, ports, strict=True)]
    return found
