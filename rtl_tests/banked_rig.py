"""The banked timing model by itself: bursts come in on a link, its commands are recorded."""

from amaranth.hdl import Module
from amaranth.lib.wiring import In, Out
from cocotb.handle import Immediate

from rtl_tests.dram_rules import Command
from rtl_tests.harness.signals import reader, unsigned
from step_hw.beat import BeatLayout
from step_hw.hbm.banked import BankedTiming
from step_hw.hbm.simple import burst_layout
from step_hw.unit import Unit
from step_lang.memory_config import MemoryConfig

__all__ = ["BankedRig", "agents", "commands_of"]

LINE_BITS = 16
WRITE = 1 << LINE_BITS
_COLUMNS = {1: "RD", 2: "WR"}
_ROWS = {1: "ACT", 2: "PRE", 3: "PREA", 4: "REF"}


class BankedRig(Unit):
    """``in0`` brings bursts: the line in the low 16 bits, a write where the bit above is set. Empty beats are dropped.

    Members
    -------
    start : In(1), refreshes count from the cycle after
    command : Out, `BankedTiming.command`; busy : Out(1)
    """

    kind = "banked_rig"

    def __init__(self, memory: MemoryConfig):
        self.memory = memory
        self.timing = BankedTiming(memory, burst_layout(LINE_BITS, 1))
        members = {"start": In(1), "busy": Out(1), "command": Out(len(self.timing.command.as_value()))}
        super().__init__([BeatLayout(LINE_BITS + 1)], [], extra=members)

    @property
    def module_name(self) -> str:
        return f"banked_rig_{self.memory.key}"

    def elaborate(self, platform):
        m = Module()
        m.submodules.timing = timing = self.timing
        i, req = self.in0, timing.req
        m.d.comb += [
            timing.start.eq(self.start),
            req.valid.eq(i.valid & ~i.payload.empty),
            req.payload.line.eq(i.payload.data[:LINE_BITS]),
            req.payload.write.eq(i.payload.data[LINE_BITS]),
            i.ready.eq(req.ready | i.payload.empty),
            self.command.eq(timing.command),
            self.busy.eq(timing.busy),
        ]
        return m


class _Recorder:
    """Gives the start pulse in cycle 0; ``note``: (cycle since the start, value of ``command``) where not idle."""

    def __init__(self, dut):
        self.dut = dut
        self._command, self._busy = reader(dut.command), reader(dut.busy)
        self.clear()

    def clear(self) -> None:
        """Forget."""
        self.note: list[tuple[int, int]] = []
        self.dut.start.set(Immediate(0))

    def drive(self, cycle: int) -> None:
        """The start pulse."""
        if cycle < 2:
            self.dut.start.set(Immediate(int(cycle == 0)))

    def sample(self, cycle: int) -> None:
        """What is done in this cycle?"""
        bits = self._command()
        if "1" in bits[-5:]:
            self.note.append((cycle - 1, unsigned(bits, "command")))


def agents(dut, case):
    """For `bench_unit`."""
    return [_Recorder(dut)]


def commands_of(note: list[tuple[int, int]], memory: MemoryConfig) -> list[Command]:
    """The recorded commands."""
    columns = memory.row_bytes // memory.burst_bytes
    width = max(1, (memory.banks - 1).bit_length())
    found = []
    for cycle, bits in note:
        column, row, bits = bits & 3, bits >> 2 & 7, bits >> 5
        column_bank, row_bank, bits = bits % (1 << width), (bits >> width) % (1 << width), bits >> 2 * width
        column_line, row_line = bits % WRITE, bits >> LINE_BITS
        if column:
            found.append(Command(cycle, _COLUMNS[column], column_bank, column_line // columns // memory.banks))
        if row:
            where = (row_bank, row_line // columns // memory.banks) if row < 3 else (0, 0)
            found.append(Command(cycle, _ROWS[row], *where))
    return found
