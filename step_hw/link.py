"""The link: a small FIFO between two units, so that no combinational path crosses it."""

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib.memory import Memory

from .beat import BeatLayout
from .unit import Unit

__all__ = ["LinkFIFO"]


REGISTERS = 8
"""Deepest link built of registers; a deeper one is a memory, whose text and gates do not grow with its depth."""


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
        head = Signal(range(self.depth))
        tail = Signal(range(self.depth))
        level = Signal(range(self.depth + 1))
        write = Signal()
        read = Signal()
        w, r = self.in0, self.out0
        m.d.comb += [
            w.ready.eq(level != self.depth),
            r.valid.eq(level != 0),
            write.eq(w.valid & w.ready),
            read.eq(r.valid & r.ready),
            self.state.eq(level),
        ]
        m.d.sync += level.eq(level + write - read)
        if self.depth <= REGISTERS:
            slots = Array(Signal(self.layout, name=f"slot{i}", reset_less=True) for i in range(self.depth))
            m.d.comb += r.payload.eq(slots[head])
            with m.If(write):
                m.d.sync += slots[tail].eq(w.payload)
        else:
            m.submodules.slots = slots = Memory(shape=self.layout, depth=self.depth, init=[])
            write_port, read_port = slots.write_port(), slots.read_port(domain="comb")
            m.d.comb += [
                write_port.addr.eq(tail), write_port.data.eq(w.payload), write_port.en.eq(write),
                read_port.addr.eq(head), r.payload.eq(read_port.data),
            ]
        with m.If(write):
            m.d.sync += tail.eq(self._next(tail))
        with m.If(read):
            m.d.sync += head.eq(self._next(head))
        return m

    def _next(self, pointer):
        if self.depth & (self.depth - 1) == 0:
            return pointer + 1
        return Mux(pointer == self.depth - 1, 0, pointer + 1)
