"""The link: a small FIFO between two units, so that no combinational path crosses it."""

from amaranth.hdl import Array, Module, Mux, Signal

from .beat import BeatLayout
from .unit import Unit

__all__ = ["LinkFIFO"]


class LinkFIFO(Unit):
    """First-in first-out queue of beats; every link of a netlist is one.

    A beat written in cycle t can be read in cycle t + 1. ``in0.ready`` and ``out0.valid`` are functions of registers
    only.

    Parameters
    ----------
    layout : BeatLayout
    depth : int
        Capacity in beats, at least 2 (one would halve the throughput).
    """

    kind = "link"

    def __init__(self, layout: BeatLayout, depth: int = 2):
        if depth < 2:
            raise ValueError(f"a link needs a depth of at least 2 for full throughput, not {depth}")
        self.layout = layout
        self.depth = depth
        super().__init__([layout], [layout], state_width=depth.bit_length())

    @property
    def module_name(self) -> str:
        return f"link_{self.layout.key}_d{self.depth}"

    def elaborate(self, platform):
        m = Module()
        slots = Array(Signal(self.layout, name=f"slot{i}", reset_less=True) for i in range(self.depth))
        head = Signal(range(self.depth))
        tail = Signal(range(self.depth))
        level = Signal(range(self.depth + 1))
        write = Signal()
        read = Signal()
        w, r = self.in0, self.out0
        m.d.comb += [
            w.ready.eq(level != self.depth),
            r.valid.eq(level != 0),
            r.payload.eq(slots[head]),
            write.eq(w.valid & w.ready),
            read.eq(r.valid & r.ready),
            self.state.eq(level),
        ]
        m.d.sync += level.eq(level + write - read)
        with m.If(write):
            m.d.sync += [slots[tail].eq(w.payload), tail.eq(self._next(tail))]
        with m.If(read):
            m.d.sync += head.eq(self._next(head))
        return m

    def _next(self, pointer):
        if self.depth & (self.depth - 1) == 0:
            return pointer + 1
        return Mux(pointer == self.depth - 1, 0, pointer + 1)
