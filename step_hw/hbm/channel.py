"""One memory channel: request queues of all ports, a rotating arbiter, and the timing model."""

import hashlib

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from step_lang.memory_config import MemoryConfig

from ..verilog import module_text
from .banked import BankedTiming
from .ports import ReadPort, WritePort
from .simple import SimpleTiming, burst_layout

__all__ = ["COUNTER_WIDTH", "QUEUE_DEPTH", "Channel"]

QUEUE_DEPTH = 2
"""Elements a port may have waiting at a channel: two, so that the channel goes from one to the next without a gap."""

_TIMINGS = {"simple": SimpleTiming, "banked": BankedTiming}

COUNTER_WIDTH = 48
"""Bits of traffic and cycle counters."""

MOST_TOLD = 120
"""Characters that the ports may take in a module's name, which is a file's too (of at most 255 bytes)."""


class Channel(wiring.Component):
    """A channel of the memory system; twin: ``sim.units.hbm``.

    An element of a port is served whole (its bursts on consecutive lines), then the next port in turn after it that has
    one waiting. The choice is made when the memory takes the element's first burst, on the queues as they then are.

    Parameters
    ----------
    memory : MemoryConfig
    reads, writes : lists of ReadPort, WritePort

    Members
    -------
    start : In(1)
        A run begins: counters restart.
    cycle : In(48)
        Cycle of the run.
    read<i>, write<i> : In(stream)
        Element requests of each port.
    idle : Out(number of write ports)
        Nothing of this write port is waiting here.
    served : Out(number of write ports)
        The last burst of an element of this write port is accepted.
    resp_valid : Out(number of read ports), resp_slot, resp_q
        Which port the burst on the storage's read port belongs to.
    store_read_enable, store_read_line, store_write_enable, store_write_line, store_write_data
        To the storage; its data follow a read by one cycle.
    read_bytes, write_bytes, bursts, first_read, last_write : Out
        Counters: useful bytes, bursts served, cycle of the first read burst and of the last write burst.
    read_any, write_any : Out(1)
        The cycle counters have a value.
    busy : Out(1)
        Something waits or is under way.
    """

    def __init__(self, memory: MemoryConfig, reads: list[ReadPort], writes: list[WritePort]):
        if not reads and not writes:
            raise ValueError("a memory channel needs at least one port")
        self.memory = memory
        self.reads = reads
        self.writes = writes
        self.line_width = ceil_log2(memory.lines)
        self.slot_width = max([port.slot_width for port in reads], default=1)
        self.q_width = max([port.q_width for port in reads], default=0)
        self.tag = data.StructLayout(
            {
                "port": max(1, ceil_log2(max(1, len(reads)))),
                "slot": self.slot_width,
                "q": max(1, self.q_width),
            }
        )
        self.burst = burst_layout(self.line_width, self.tag.size)
        width = 8 * memory.burst_bytes
        members = {
            "start": In(1),
            "cycle": In(COUNTER_WIDTH),
            "store_read_enable": Out(1),
            "store_read_line": Out(self.line_width),
            "store_write_enable": Out(memory.burst_bytes),
            "store_write_line": Out(self.line_width),
            "store_write_data": Out(width),
            "busy": Out(1),
            "read_any": Out(1),
            "write_any": Out(1),
        }
        members |= {
            name: Out(COUNTER_WIDTH) for name in ("read_bytes", "write_bytes", "bursts", "first_read", "last_write")
        }
        members |= {f"read{i}": In(stream.Signature(port.request)) for i, port in enumerate(reads)}
        members |= {f"write{i}": In(stream.Signature(port.queued)) for i, port in enumerate(writes)}
        if reads:
            members |= {
                "resp_valid": Out(len(reads)),
                "resp_slot": Out(self.slot_width),
                "resp_q": Out(max(1, self.q_width)),
            }
        if writes:
            members |= {"idle": Out(len(writes)), "served": Out(len(writes))}
        super().__init__(members)

    @property
    def module_name(self) -> str:
        """Depends on the parameters only. It names a file too, so many ports are told by their number and a digest."""
        reads = "".join(f"_r{p.elements.element_bytes}w{p.window}" for p in self.reads)
        writes = "".join(f"_w{p.elements.element_bytes}" for p in self.writes)
        ports = reads + writes
        if len(ports) > MOST_TOLD:
            digest = hashlib.sha256(ports.encode()).hexdigest()[:16]
            ports = f"_r{len(self.reads)}_w{len(self.writes)}_{digest}"
        return f"hbm_channel_{self.memory.key}_a{self.line_width}{ports}"

    def module(self) -> str:
        """Verilog text."""
        return module_text(self, self.module_name)

    def elaborate(self, platform):
        m = Module()
        ports = [*self.reads, *self.writes]
        pop = Signal(len(ports))
        queues = [self._queue(m, f"read{i}", pop[i]) for i in range(len(self.reads))]
        queues += [self._queue(m, f"write{i}", pop[len(self.reads) + i]) for i in range(len(self.writes))]
        heads = [head for _, head in queues]
        waiting = Signal(len(ports))
        m.d.comb += [waiting[p].eq(level != 0) for p, (level, _) in enumerate(queues)]
        if self.writes:
            m.d.comb += [self.idle.eq(~waiting[len(self.reads) :]), self.served.eq(pop[len(self.reads) :])]

        # Rotating priority: ports after the one served last come first; an element begun is finished.
        index = range(max(2, len(ports)))
        last = Signal(index)
        turn = Signal(index)
        q = Signal(range(max(2, max(p.elements.bursts for p in ports))))
        later = Signal(len(ports))
        candidates = Signal(len(ports))
        m.d.comb += [
            later.eq(waiting & (Const(-2, len(ports) + 1) << last)[: len(ports)]),
            candidates.eq(Mux(later.any(), later, waiting)),
        ]
        with m.If(q != 0):
            m.d.comb += turn.eq(last)
        with m.Else():
            for p in reversed(range(len(ports))):
                with m.If(candidates[p]):
                    m.d.comb += turn.eq(p)

        timing = _TIMINGS[self.memory.model](self.memory, self.burst)
        m.submodules.timing = timing
        accept = Signal()
        ends = Signal()
        write = Signal()
        line = Signal(self.line_width)
        # Signals of their own, joined by one assignment: Icarus loops for ever where two processes write parts of one.
        tag = {name: Signal(field.width, name=f"tag_{name}") for name, field in self.tag}
        useful = Signal(range(self.memory.burst_bytes + 1))
        width = 8 * self.memory.burst_bytes
        wdata = Signal(width)
        enable = Signal(self.memory.burst_bytes)
        with m.Switch(turn):
            for p, (port, head) in enumerate(zip(ports, heads, strict=True)):
                with m.Case(p):
                    m.d.comb += [
                        line.eq(head.line + q),
                        ends.eq(q == port.elements.bursts - 1),
                        useful.eq(port.elements.burst_bytes),
                    ]
                    if p < len(self.reads):
                        m.d.comb += [tag["port"].eq(p), tag["slot"].eq(head.slot), tag["q"].eq(q)]
                    else:
                        share = port.elements.burst_bytes
                        m.d.comb += [
                            write.eq(1),
                            wdata.eq(
                                head.data.word_select(q, width)
                                if port.elements.per_burst == 1
                                else head.data.replicate(port.elements.per_burst)
                            ),
                            enable.eq(Const((1 << share) - 1) << (head.position * share)),
                        ]
        m.d.comb += [
            timing.start.eq(self.start),
            timing.req.valid.eq(waiting.any()),
            timing.req.payload.eq(Cat(line, *tag.values(), write)),
            accept.eq(timing.req.valid & timing.req.ready),
            self.store_write_enable.eq(Mux(accept & write, enable, 0)),
            self.store_write_line.eq(line),
            self.store_write_data.eq(wdata),
            self.busy.eq(waiting.any() | timing.busy),
        ]
        with m.If(accept):
            m.d.comb += pop.eq(ends << turn)
            m.d.sync += [last.eq(turn), q.eq(Mux(ends, 0, q + 1))]

        if self.reads:
            returned = Signal(self.tag)
            m.d.comb += [
                returned.eq(timing.resp.payload.tag),
                self.store_read_enable.eq(timing.resp.valid),
                self.store_read_line.eq(timing.resp.payload.line),
            ]
            m.d.sync += [
                self.resp_valid.eq(Mux(timing.resp.valid, Const(1) << returned.port, 0)),
                self.resp_slot.eq(returned.slot),
                self.resp_q.eq(returned.q),
            ]
        self._count(m, accept, write, useful)
        return m

    def _queue(self, m, name, pop):
        """Level and head of a request queue of this port; ``ready`` is a function of the level only."""
        port = getattr(self, name)
        level = Signal(range(QUEUE_DEPTH + 1), name=f"{name}_level")
        slots = Array(Signal(port.payload.shape(), name=f"{name}_slot{i}", reset_less=True) for i in range(QUEUE_DEPTH))
        first, free = Signal(range(QUEUE_DEPTH), name=f"{name}_first"), Signal(range(QUEUE_DEPTH), name=f"{name}_free")
        push = Signal(name=f"{name}_push")
        m.d.comb += [port.ready.eq(level != QUEUE_DEPTH), push.eq(port.valid & port.ready)]
        m.d.sync += level.eq(level + push - pop)
        with m.If(push):
            m.d.sync += [slots[free].eq(port.payload), free.eq(free + 1)]
        with m.If(pop):
            m.d.sync += first.eq(first + 1)
        return level, slots[first]

    def _count(self, m, accept, write, useful):
        with m.If(self.start):
            m.d.sync += [
                getattr(self, name).eq(0) for name in ("read_bytes", "write_bytes", "bursts", "read_any", "write_any")
            ]
        with m.Elif(accept):
            m.d.sync += self.bursts.eq(self.bursts + 1)
            with m.If(write):
                m.d.sync += [
                    self.write_bytes.eq(self.write_bytes + useful),
                    self.last_write.eq(self.cycle),
                    self.write_any.eq(1),
                ]
            with m.Else():
                m.d.sync += [self.read_bytes.eq(self.read_bytes + useful), self.read_any.eq(1)]
                with m.If(~self.read_any):
                    m.d.sync += self.first_read.eq(self.cycle)
