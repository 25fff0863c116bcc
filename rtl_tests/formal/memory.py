"""A memory tile whose inside can be seen: bufferize, scratchpad and streamifies, a link between any two."""

from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from step_hw.link import LinkFIFO
from step_hw.unit import Unit
from step_hw.units.bufferize import Bufferize
from step_hw.units.fork import Fork
from step_hw.units.scratchpad import Scratchpad, ScratchpadShape
from step_hw.units.streamify import Streamify

__all__ = ["MemoryTile"]


class MemoryTile(Unit):
    """``in0`` elements, ``out0..`` passes, one output for each of ``readers`` streamifies, which get every reference;
    registers of bufferize and of the streamifies, all the same, under their names. Further outputs, of the ports to the
    scratchpad: ``take`` a ``page`` (for buffer ``owner``), ``write`` a frame of page ``written``, ``close`` a buffer,
    ``release<k>``: streamify k has done with the buffer ``released<k>``; ``used`` pages."""

    def __init__(self, frames: int, page_frames: int, references: int, layout, readers: int = 1):
        self.shape = shape = ScratchpadShape(frames, page_frames, references, layout)
        self.bufferize, self.scratchpad = Bufferize(shape), Scratchpad(shape, readers)
        self.streamifies = [Streamify(shape) for _ in range(readers)]
        page, ref = Out(range(shape.pages)), Out(shape.reference_bits)
        cfg = self.bufferize.cfg_widths | self.streamifies[0].cfg_widths
        super().__init__([layout], [layout] * readers, cfg, extra={
            "take": Out(1), "page": page, "owner": ref, "write": Out(1), "written": page, "close": Out(1),
            "used": Out(range(shape.pages + 1)),
            **{f"release{k}": Out(1) for k in range(readers)}, **{f"released{k}": ref for k in range(readers)}})

    def elaborate(self, platform):
        m = Module()
        w, pad = self.bufferize, self.scratchpad
        m.submodules.bufferize, m.submodules.scratchpad = w, pad
        wiring.connect(m, wiring.flipped(self.in0), w.in0)
        wiring.connect(m, w.port, pad.write)
        references = [w.out0]
        if len(self.streamifies) > 1:
            m.submodules.copies = copies = Fork(self.shape.reference_layout, len(self.streamifies))
            wiring.connect(m, self._link(m, "references", w.out0), copies.in0)
            references = copies.outs
        for k, (unit, source, out) in enumerate(zip(self.streamifies, references, self.outs)):
            m.submodules[f"streamify{k}"] = unit
            wiring.connect(m, self._link(m, f"references{k}", source), unit.in0)
            wiring.connect(m, unit.port, pad.reads[k])
            wiring.connect(m, unit.out0, wiring.flipped(out))
            m.d.comb += [getattr(self, f"release{k}").eq(unit.port.release),
                         getattr(self, f"released{k}").eq(unit.port.ref)]
        for unit in (w, *self.streamifies):
            m.d.comb += [getattr(unit.cfg, name).eq(getattr(self.cfg, name)) for name in unit.cfg_widths]
        error = w.error | pad.error
        for unit in self.streamifies:
            error |= unit.error
        m.d.comb += [
            self.error.eq(error), self.state.eq(Cat(w.state).any()), self.used.eq(pad.used),
            self.take.eq(w.port.take), self.page.eq(w.port.page), self.owner.eq(w.port.owner),
            self.write.eq(w.port.write), self.written.eq(w.port.address >> self.shape.offset_bits),
            self.close.eq(w.port.close),
        ]
        return m

    def _link(self, m: Module, name: str, source):
        """What leaves a link behind ``source``."""
        m.submodules[name] = link = LinkFIFO(self.shape.reference_layout)
        wiring.connect(m, source, link.in0)
        return link.out0
