"""The unit graph: which hardware units a lowered program becomes, and what their registers hold.

RTL (``step_hw.netlist``) and performance model (``sim``) are both built from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["LinkSpec", "Payload", "TensorPlacement", "UnitGraph", "UnitSpec"]


@dataclass(frozen=True)
class Payload:
    """What a link carries: ``data_bits`` of data and up to ``max_rows`` valid rows; ``type`` is the STeP type."""

    data_bits: int
    max_rows: int
    type: Any = None


@dataclass
class LinkSpec:
    """One link. ``source``/``destination`` are (unit index, port) or None at a bench's boundary; ``stream`` is the name
    of the lowered program's stream it carries (several links after a fork); ``elements``: how many that stream has by
    its shape, None where only a run tells."""

    index: int
    name: str
    payload: Payload
    depth: int = 2
    source: tuple[int, int] | None = None
    destination: tuple[int, int] | None = None
    stream: str = ""
    elements: int | None = None


@dataclass
class UnitSpec:
    """One hardware unit.

    kind : name of ``step_hw/units/<kind>.py`` and ``sim/units/<kind>.py``
    name : instance name, a person's name for it in a waveform
    inputs, outputs : link indices by port
    params : elaboration parameters (function, memory sizes, payload facts)
    config : configuration register name to value
    is_sink : the run is over when all sinks have seen done
    origin : name and source line of the operator it realises
    """

    index: int
    kind: str
    name: str
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    params: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, int] = field(default_factory=dict)
    is_sink: bool = False
    origin: str = ""


@dataclass(frozen=True)
class TensorPlacement:
    """Where an off-chip tensor, or what the host gives for an input stream, lies.

    base : byte address; nbytes : bytes taken, whole lines of the memory
    element_bytes : bytes of one element (a physical tile), in which it lies as on a link, element (0, 0) lowest
    grid : physical tiles (rows, cols), row-major; an input stream's elements are one column
    type : the element's type
    is_input : whether it is an input stream's
    """

    name: str
    base: int
    nbytes: int
    element_bytes: int
    grid: tuple[int, int]
    type: Any = None
    is_input: bool = False


@dataclass
class UnitGraph:
    """Units and links in a deterministic order; ``tensors`` by name; ``tile`` is T.

    name : the program's; memory : ``MemoryConfig``; warnings : what will work, but slowly
    """

    units: list[UnitSpec]
    links: list[LinkSpec]
    tensors: dict[str, TensorPlacement] = field(default_factory=dict)
    tile: int = 0
    name: str = "program"
    memory: Any = None
    warnings: list[str] = field(default_factory=list)

    def unit(self, name: str) -> UnitSpec:
        """The unit of that name."""
        return next(unit for unit in self.units if unit.name == name)

    def link(self, name: str) -> LinkSpec:
        """The link of that name."""
        return next(link for link in self.links if link.name == name)

    def links_to_reassembles(self) -> set[int]:
        """Links that lead to an input of a reassemble. A run is over with its last store, and a reassemble passes done
        on when its selectors are done (a loop may need that), so that what no selector chose may still be on its
        way."""
        found: set[int] = set()
        todo = [link for unit in self.units if unit.kind == "reassemble" for link in unit.inputs[:-1]]
        while todo:
            link = todo.pop()
            if link in found:
                continue
            found.add(link)
            source = self.links[link].source
            if source is not None:
                todo += self.units[source[0]].inputs
        return found
