"""Whether the model knows the values that steer a program, before it is modelled.

Selectors, addresses, counts and references steer units: what these do depends on them. The model carries such values
beside the tokens (`sim.values`), but does not compute what elements are otherwise worth; an address that was an element
of a tensor would silently be another one. `check_steering` walks back from everything that steers and refuses such a
program by name.

A unit's model module says

``STEERED_BY``
    the input ports whose values steer it, negative ones counted from the last; default none;
``value_inputs(unit, graph, port) -> sequence of input ports, or None``
    from the values of which of its inputs an output's value comes; None where it is not computed, as by default.
    `sim.values.passes` is for units whose outputs are what comes in at port 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from step_lang.errors import UnknownFunction
from step_lang.unitgraph import UnitGraph

from .dispatch import unit_modules

__all__ = ["check_steering"]


def check_steering(graph: UnitGraph) -> None:
    """Raise `UnknownFunction` naming the operator that is steered by a value which the model does not compute, and the
    one that makes the value."""
    modules = unit_modules()
    walk = _Walk(graph, modules)
    for unit in graph.units:
        for port in getattr(modules[unit.kind], "STEERED_BY", ()):
            link = unit.inputs[port]
            maker = walk.unknown(link)
            if maker is not None:
                raise UnknownFunction(
                    f"the model of {unit.kind} '{unit.name}' ({unit.origin}), which '{graph.links[link].name}' steers: "
                    f"values made by {maker.kind} '{maker.name}' ({maker.origin}) vs values that the model computes",
                    fix="run it on RTL (step-hw cosim), or steer by an input stream, selectors, and integer scalars "
                        "made of these")


class _Walk:
    """Looks up, from link to link, where values come from."""

    def __init__(self, graph: UnitGraph, modules: Mapping[str, ModuleType]):
        self.graph = graph
        self.modules = modules
        self._known: set[int] = set()   # links whose values are known, or being looked up (a cycle adds no doubt)

    def unknown(self, link: int):
        """The unit that makes values that the model does not compute, on the way to ``link``; None for no such unit."""
        pending = [link]
        while pending:
            link = pending.pop()
            if link in self._known:
                continue
            self._known.add(link)
            source = self.graph.links[link].source
            if source is None:
                continue    # a bench feeds it
            unit = self.graph.units[source[0]]
            given = getattr(self.modules[unit.kind], "value_inputs", None)
            ports = None if given is None else given(unit, self.graph, source[1])
            if ports is None:
                return unit
            if unit.kind == "streamify":
                pending += self._buffered(unit)
            pending += [unit.inputs[port] for port in ports]
        return None

    def _buffered(self, streamify) -> list[int]:
        """Links of what fills the buffers that ``streamify`` reads."""
        pads = [pad for pad, _ in streamify.params["ports"]]
        return [unit.inputs[0] for unit in self.graph.units
                if unit.kind == "bufferize" and unit.params["scratchpad"] in pads]
