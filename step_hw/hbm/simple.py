"""The ``simple`` timing model of a channel: a burst every ``interval`` cycles, data ``latency`` cycles later."""

import itertools

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from step_lang.memory_config import MemoryConfig

__all__ = ["SimpleTiming", "burst_layout"]


def burst_layout(line_width: int, tag_width: int) -> data.StructLayout:
    """What a timing model is told of a burst: its line, whether it is a write, and a tag that comes back with the
    data."""
    return data.StructLayout({"line": line_width, "tag": tag_width, "write": 1})


class SimpleTiming(wiring.Component):
    """Twin: ``sim.units.hbm``.

    Members
    -------
    start : In(1), a run begins: the next burst is the first and waits ``startup`` cycles
    req : In(stream of bursts)
    resp : Out({valid, payload}), the cycle before the data of a read leaves (the storage takes one cycle)
    busy : Out(1), reads are under way
    """

    def __init__(self, memory: MemoryConfig, burst: data.StructLayout):
        self.memory = memory
        self.burst = burst
        super().__init__(
            {
                "start": In(1),
                "req": In(stream.Signature(burst)),
                "resp": Out(wiring.Signature({"valid": Out(1), "payload": Out(burst)})),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        memory = self.memory
        pause = Signal(range(max(2, memory.interval)))
        warming = Signal(range(max(2, memory.startup + 1)), init=memory.startup)
        accept = Signal()
        m.d.comb += [
            self.req.ready.eq((pause == 0) & (warming == 0)),
            accept.eq(self.req.valid & self.req.ready),
        ]
        with m.If(self.start):
            m.d.sync += warming.eq(memory.startup)
        with m.Elif(self.req.valid & (warming != 0)):
            m.d.sync += warming.eq(warming - 1)
        with m.If(accept):
            m.d.sync += pause.eq(memory.interval - 1)
        with m.Elif(pause != 0):
            m.d.sync += pause.eq(pause - 1)

        # A read is `latency - 1` cycles on its way, the storage's read the last.
        under_way = [Signal(1 + self.burst.size, name=f"stage{i}") for i in range(memory.latency - 1)]
        m.d.sync += under_way[0].eq(Cat(accept & ~self.req.payload.write, self.req.payload))
        for before, after in itertools.pairwise(under_way):
            m.d.sync += after.eq(before)
        m.d.comb += [
            Cat(self.resp.valid, self.resp.payload).eq(under_way[-1]),
            self.busy.eq(Cat(stage[0] for stage in under_way).any()),
        ]
        return m
