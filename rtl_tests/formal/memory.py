"""A memory tile whose inside can be seen: bufferize, scratchpad and streamify, a link between them."""

from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from step_hw.link import LinkFIFO
from step_hw.unit import Unit
from step_hw.units.bufferize import Bufferize
from step_hw.units.scratchpad import Scratchpad, ScratchpadShape
from step_hw.units.streamify import Streamify

__all__ = ["MemoryTile"]


class MemoryTile(Unit):
    """``in0`` elements, ``out0`` passes; registers of bufferize and streamify under their names. Further outputs, of
    the ports to the scratchpad: ``take`` a ``page`` (for buffer ``owner``), ``write`` a frame of page ``written``,
    ``close`` a buffer, ``release`` the buffer ``released``; ``used`` pages."""

    def __init__(self, frames: int, page_frames: int, references: int, layout):
        self.shape = shape = ScratchpadShape(frames, page_frames, references, layout)
        self.bufferize, self.scratchpad, self.streamify = Bufferize(shape), Scratchpad(shape), Streamify(shape)
        page, ref = Out(range(shape.pages)), Out(shape.reference_bits)
        super().__init__([layout], [layout], self.bufferize.cfg_widths | self.streamify.cfg_widths, extra={
            "take": Out(1), "page": page, "owner": ref, "write": Out(1), "written": page, "close": Out(1),
            "release": Out(1), "released": ref, "used": Out(range(shape.pages + 1))})

    def elaborate(self, platform):
        m = Module()
        w, pad, r = self.bufferize, self.scratchpad, self.streamify
        m.submodules.bufferize, m.submodules.scratchpad, m.submodules.streamify = w, pad, r
        m.submodules.references = link = LinkFIFO(self.shape.reference_layout)
        wiring.connect(m, wiring.flipped(self.in0), w.in0)
        wiring.connect(m, w.port, pad.write)
        wiring.connect(m, w.out0, link.in0)
        wiring.connect(m, link.out0, r.in0)
        wiring.connect(m, r.port, pad.read0)
        wiring.connect(m, r.out0, wiring.flipped(self.out0))
        for unit in (w, r):
            m.d.comb += [getattr(unit.cfg, name).eq(getattr(self.cfg, name)) for name in unit.cfg_widths]
        m.d.comb += [
            self.error.eq(w.error | pad.error | r.error), self.state.eq(Cat(w.state).any()), self.used.eq(pad.used),
            self.take.eq(w.port.take), self.page.eq(w.port.page), self.owner.eq(w.port.owner),
            self.write.eq(w.port.write), self.written.eq(w.port.address >> self.shape.offset_bits),
            self.close.eq(w.port.close), self.release.eq(r.port.release), self.released.eq(r.port.ref),
        ]
        return m
