"""Random store: elements of a stream to the addresses of another."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Out
from amaranth.utils import exact_log2

from step_lang.memory_config import MemoryConfig
from step_lang.timing import store_pending

from ..beat import STOP_WIDTH, BeatLayout
from ..hbm.ports import WritePort
from ..hbm.writing import request_writes, written_channels
from ..unit import ErrorCode, Unit

__all__ = ["RandomStore"]


class RandomStore(Unit):
    """Hardware of ``step_lang.ops.random_offchip_store``. Latency 0 to the channels' queues, one element a cycle.

    Each element of ``in1`` goes to the element of the tensor whose index is on ``in0``. With ``acknowledges`` the unit
    remembers what it has asked for, in order; when the channels of the oldest element have accepted all of its bursts,
    so that who reads them now gets the new ones, it is forgotten, and if it closed a chunk of ``inner`` dimensions, an
    acknowledgement leaves. Bare stops above a chunk and done pass in order.

    Parameters
    ----------
    address : BeatLayout
        Payload of ``in0``, at most 32 bits.
    layout : BeatLayout
        Payload of ``in1``.
    memory, element_bytes
        As of `Store`.
    acknowledges : bool
        Whether there is ``out0``.

    Registers
    ---------
    base : byte address of the tensor, at a line
    limit : elements of the tensor; an address outside, or a base within a line, sets ADDRESS_RANGE
    inner : inner dimensions of what is acknowledged as a whole.

    Streams whose stop, empty or done differ set MISALIGNED. ``state``, from the low bit: done has been seen, something
    is to be acknowledged.

    Further members
    ---------------
    mem : Out(WritePort)
    finished : Out(1), done has been seen and every burst has been accepted by its channel
    """

    kind = "random_store"

    def __init__(self, address: BeatLayout, layout: BeatLayout, *, memory: MemoryConfig, element_bytes: int,
                 acknowledges: bool = True):
        if not 1 <= address.data_width <= 32:
            raise ValueError(f"an address has 1..32 bits, not {address.data_width}")
        if layout.data_width > 8 * element_bytes:
            raise ValueError(f"{element_bytes} bytes in memory are too few for {layout.data_width} data bits")
        self.address, self.layout = address, layout
        self.memory = memory
        self.port = WritePort(memory, element_bytes)
        self.acknowledges = acknowledges
        self.pending = store_pending(memory, element_bytes)
        super().__init__([address, layout], [BeatLayout(1)] if acknowledges else [],
                         cfg={"base": 32, "limit": 32, "inner": STOP_WIDTH}, state_width=2,
                         extra={"mem": Out(self.port), "finished": Out(1)})

    @property
    def module_name(self) -> str:
        place = f"c{self.memory.channels}b{self.memory.burst_bytes}a{self.memory.lines.bit_length() - 1}"
        told = "_ack" if self.acknowledges else ""
        return f"random_store_{self.address.key}_{self.layout.key}_e{self.port.elements.element_bytes}_{place}{told}"

    def elaborate(self, platform):
        m = Module()
        a, i = self.in0, self.in1
        head = a.payload
        error = Signal(4)
        ended = Signal()
        present = Signal()
        agree = Signal()
        element = Signal()
        room = Signal()     # for one more to be acknowledged
        moves = Signal()
        index = Signal(40)  # as wide as that of a view
        accept, outside, group = request_writes(m, self, element & room, index, i.payload.data)
        m.d.comb += [
            index.eq(head.data),
            present.eq(a.valid & i.valid & (error == 0)),
            agree.eq((head.stop == i.payload.stop) & (head.empty == i.payload.empty) & (head.done == i.payload.done)),
            element.eq(present & agree & ~head.empty),
            moves.eq(accept | (present & agree & head.empty & room)),
            a.ready.eq(moves),
            i.ready.eq(moves),
            self.error.eq(error),
            self.finished.eq(ended & self.mem.idle),
        ]
        with m.If(present & ~agree):
            m.d.sync += error.eq(ErrorCode.MISALIGNED)
        with m.Elif(element & outside):
            m.d.sync += error.eq(ErrorCode.ADDRESS_RANGE)
        with m.If(moves & head.done):
            m.d.sync += ended.eq(1)
        waiting = self._acknowledge(m, moves, group, room) if self.acknowledges else 0
        if not self.acknowledges:
            m.d.comb += room.eq(1)
        m.d.comb += self.state.eq(Cat(ended, waiting))
        return m

    def _acknowledge(self, m, moves, group, room):
        """The list of what is to be acknowledged; returns whether it holds anything."""
        head, o, channels = self.in0.payload, self.out0, self.memory.channels
        entry = data.StructLayout({"stop": STOP_WIDTH, "empty": 1, "done": 1, "group": len(group)})
        m.submodules.pending = pending = Memory(shape=entry, depth=self.pending, init=[])
        write, read = pending.write_port(), pending.read_port(domain="comb")
        first = Signal(entry)
        joins = Signal()
        leaves = Signal()
        whole = Signal()
        closes = Signal()
        begin, end = Signal(exact_log2(self.pending)), Signal(exact_log2(self.pending))
        level = Signal(range(self.pending + 1))
        served = [Signal(range(self.pending + 1), name=f"served{c}") for c in range(channels)]
        targets = Signal(channels)
        m.d.comb += [
            room.eq(level != self.pending),
            # A bare stop within a chunk is nobody's.
            joins.eq(moves & (~head.empty | head.done | (head.stop >= self.cfg.inner))),
            write.addr.eq(end),
            write.en.eq(joins),
            write.data.eq(Cat(head.stop, head.empty, head.done, group)),
            read.addr.eq(begin),
            first.eq(read.data),
            targets.eq(Mux(first.empty, 0, written_channels(self.port, first.group))),
            whole.eq((level != 0) & Cat(~targets[c] | (served[c] != 0) for c in range(channels)).all()),
            closes.eq(first.empty | (first.stop >= self.cfg.inner)),
            o.valid.eq(whole & closes),
            o.payload.data.eq(~first.empty),
            o.payload.rows.eq(~first.empty),
            o.payload.stop.eq(Mux(first.done, 0, first.stop - self.cfg.inner)),
            o.payload.empty.eq(first.empty),
            o.payload.done.eq(first.done),
            leaves.eq(whole & (~closes | o.ready)),
        ]
        m.d.sync += level.eq(level + joins - leaves)
        with m.If(joins):
            m.d.sync += end.eq(end + 1)
        with m.If(leaves):
            m.d.sync += begin.eq(begin + 1)
        for c in range(channels):
            m.d.sync += served[c].eq(served[c] + getattr(self.mem, f"served{c}") - (leaves & targets[c]))
        return level != 0
