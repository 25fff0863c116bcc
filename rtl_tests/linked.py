"""A unit with the link FIFOs that it has in a netlist, as a design of its own."""

from collections.abc import Mapping

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from step_hw.link import LinkFIFO
from step_hw.unit import Unit

__all__ = ["Linked"]


class Linked(Unit):
    """``unit`` with a :class:`LinkFIFO` on every stream port; other ports (memory interfaces) pass through.

    Parameters
    ----------
    unit : Unit
        May be a composite of several units.
    depths : mapping of port name to capacity in beats, default 2

    Members of its own
    ------------------
    pushes : Out(outputs)
        Bit k: the unit writes a beat into the link behind ``out<k>`` in this cycle.
    """

    kind = "linked"

    def __init__(self, unit: Unit, depths: Mapping[str, int] | None = None):
        self.unit = unit
        self.depths = dict(depths or {})
        self.links = {
            f"{side}{k}": LinkFIFO(layout, self.depths.get(f"{side}{k}", 2))
            for side, layouts in (("in", unit.input_layouts), ("out", unit.output_layouts))
            for k, layout in enumerate(layouts)
        }
        own = {*self.links, "cfg", "error", "state"}
        self.passed = {name: member for name, member in unit.signature.members.items() if name not in own}
        super().__init__(unit.input_layouts, unit.output_layouts, unit.cfg_widths, len(unit.state),
                         {**self.passed, "pushes": Out(max(1, len(unit.output_layouts)))})

    @property
    def module_name(self) -> str:
        depths = "".join(f"_{port}d{depth}" for port, depth in sorted(self.depths.items()))
        return f"linked_{self.unit.module_name}{depths}"

    def dependencies(self) -> dict[str, str]:
        return self.unit.dependencies()

    def elaborate(self, platform):
        m = Module()
        unit = self.unit
        m.submodules.unit = unit
        for name, link in self.links.items():
            m.submodules[f"{name}_link"] = link
            outer, inner = wiring.flipped(getattr(self, name)), getattr(unit, name)
            if name.startswith("in"):
                wiring.connect(m, outer, link.in0)
                wiring.connect(m, link.out0, inner)
            else:
                wiring.connect(m, inner, link.in0)
                wiring.connect(m, link.out0, outer)
        if self.cfg_widths:
            wiring.connect(m, wiring.flipped(self.cfg), unit.cfg)
        for name, member in self.passed.items():
            outer, inner = getattr(self, name), getattr(unit, name)
            if member.is_signature:
                wiring.connect(m, wiring.flipped(outer), inner)
            elif member.flow is Out:
                m.d.comb += outer.eq(inner)
            else:
                m.d.comb += inner.eq(outer)
        m.d.comb += [self.error.eq(unit.error), self.state.eq(unit.state)]
        m.d.comb += [self.pushes[k].eq(o.valid & o.ready) for k, o in enumerate(unit.outs)]
        return m
