"""Store: elements of a stream to an affine view of an off-chip tensor, in arrival order."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib.wiring import Out

from step_lang.memory_config import MemoryConfig

from ..beat import BeatLayout
from ..hbm.affine import AFFINE_REGISTERS, AffineCounter
from ..hbm.ports import WritePort
from ..hbm.writing import request_writes
from ..unit import ErrorCode, Unit

__all__ = ["Store"]


class Store(Unit):
    """Hardware of ``step_lang.ops.linear_offchip_store``. Latency 0 to the channels' queues, one element a cycle.

    Elements go to the positions of the view one after the other; stops are of no account. An element after the last
    position sets OVERFLOW, one outside the tensor, or a base within a line, ADDRESS_RANGE.

    Parameters
    ----------
    layout : BeatLayout
    memory : MemoryConfig
    element_bytes : int
        Bytes of an element in memory, a power of two; bits above the data are written as 0.

    Registers
    ---------
    base : byte address of the tensor, at a line
    dims : loops of the affine view
    count0..5, stride0..5 : iterations of each loop, loop 0 innermost, and elements from one to the next (two's
        complement); see ``step_hw.hbm.affine``
    limit : elements of the tensor.

    Further members
    ---------------
    mem : Out(WritePort)
    start : In(1), a run begins: ``finished`` falls
    finished : Out(1), done has been seen and every burst has been accepted by its channel
    """

    kind = "store"

    def __init__(self, layout: BeatLayout, *, memory: MemoryConfig, element_bytes: int):
        if layout.data_width > 8 * element_bytes:
            raise ValueError(f"{element_bytes} bytes in memory are too few for {layout.data_width} data bits")
        self.layout = layout
        self.memory = memory
        self.port = WritePort(memory, element_bytes)
        super().__init__(
            [layout],
            [],
            cfg={"base": 32, "limit": 32} | AFFINE_REGISTERS,
            state_width=2,
            extra={"mem": Out(self.port), "finished": Out(1)},
        )

    @property
    def module_name(self) -> str:
        place = f"c{self.memory.channels}b{self.memory.burst_bytes}a{self.memory.lines.bit_length() - 1}"
        return f"store_{self.layout.key}_e{self.port.elements.element_bytes}_{place}"

    def elaborate(self, platform):
        m = Module()
        i = self.in0
        m.submodules.counter = counter = AffineCounter()
        m.d.comb += [getattr(counter.cfg, name).eq(getattr(self.cfg, name)) for name in AFFINE_REGISTERS]
        error = Signal(4)
        full = Signal()  # the view's last position is taken
        ended = Signal()  # done has been seen
        element = Signal()
        overflow = Signal()
        accept, outside, _ = request_writes(m, self, element & ~overflow, counter.index, i.payload.data)
        m.d.comb += [
            self.error.eq(error),
            self.state.eq(Cat(full, ended)),
            element.eq(i.valid & ~i.payload.empty & (error == 0)),
            overflow.eq(full | counter.barren | counter.hollow),
            counter.step.eq(accept),
            i.ready.eq(accept | (i.payload.empty & (error == 0))),
            self.finished.eq(ended & self.mem.idle),
        ]
        with m.If(accept & counter.last):
            m.d.sync += full.eq(1)
        with m.If(element & overflow):
            m.d.sync += error.eq(ErrorCode.OVERFLOW)
        with m.Elif(element & outside):
            m.d.sync += error.eq(ErrorCode.ADDRESS_RANGE)
        with m.If(i.valid & i.payload.done):
            m.d.sync += [ended.eq(1), full.eq(0)]
        return m
