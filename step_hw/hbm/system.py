"""The memory system: all channels, their contents, and the counters."""

from collections.abc import Sequence

from amaranth.hdl import Cat, ClockSignal, Const, Instance, Module, Mux, ResetSignal, Signal
from amaranth.lib.wiring import In, Out

from step_lang.memory_config import MemoryConfig

from ..unit import Unit
from .channel import COUNTER_WIDTH, Channel
from .ports import ReadData, ReadPort, WritePort
from .store import store_module

__all__ = ["MemorySystem"]


class MemorySystem(Unit):
    """Everything off-chip.

    Parameters
    ----------
    memory : MemoryConfig
    read_ports : sequence of (element_bytes, window)
    write_ports : sequence of element_bytes

    Members
    -------
    read<i> : In(ReadPort), write<i> : In(WritePort)
        One per load and input unit, one per store unit.
    data : Out(ReadData)
        Read data of all channels, for all read ports; absent without any.
    start : In(1)
        The pulse that starts the run (the one that load units get): counters restart, the next cycle is cycle 0.
    dump : In(1)
        A cycle of 1 writes the contents to the files of ``+hbm_dump``.
    cycle : Out(48)
        Cycles since the start.
    read_bytes, write_bytes : Out(48)
        Useful bytes of the bursts served.
    bursts<c> : Out(48)
        Bursts served by channel c; times ``memory.burst_interval`` it is the channel's busy cycles.
    first_read_cycle, last_write_cycle : Out(48)
        Cycle in which the first read burst and the last write burst were accepted; all ones if there was none.
    busy : Out(1)
        Requests wait or reads are under way.
    """

    kind = "hbm"

    def __init__(
        self, memory: MemoryConfig, read_ports: Sequence[tuple[int, int]] = (), write_ports: Sequence[int] = ()
    ):
        self.memory = memory
        self.reads = [ReadPort(memory, element_bytes, window) for element_bytes, window in read_ports]
        self.writes = [WritePort(memory, element_bytes) for element_bytes in write_ports]
        self.channel = Channel(memory, self.reads, self.writes)
        extra = {f"read{i}": In(port) for i, port in enumerate(self.reads)}
        extra |= {f"write{i}": In(port) for i, port in enumerate(self.writes)}
        if self.reads:
            extra["data"] = Out(ReadData(memory))
        extra |= {"start": In(1), "dump": In(1), "busy": Out(1)}
        extra |= {
            name: Out(COUNTER_WIDTH)
            for name in ("cycle", "read_bytes", "write_bytes", "first_read_cycle", "last_write_cycle")
        }
        extra |= {f"bursts{c}": Out(COUNTER_WIDTH) for c in range(memory.channels)}
        super().__init__([], [], extra=extra)

    @property
    def module_name(self) -> str:
        return self.channel.module_name.replace("hbm_channel", "hbm", 1)

    def dependencies(self) -> dict[str, str]:
        name, text = store_module(self.memory.burst_bytes, self.memory.lines)
        return {name: text, self.channel.module_name: self.channel.module()}

    def elaborate(self, platform):
        m = Module()
        m.d.sync += self.cycle.eq(Mux(self.start, 0, self.cycle + 1))
        channels = [self._channel(m, c) for c in range(self.memory.channels)]
        m.d.comb += [
            self.busy.eq(Cat(ch["busy"] for ch in channels).any()),
            self.state.eq(self.busy),
            self.read_bytes.eq(sum(ch["read_bytes"] for ch in channels)),
            self.write_bytes.eq(sum(ch["write_bytes"] for ch in channels)),
        ]
        m.d.comb += [getattr(self, f"bursts{c}").eq(ch["bursts"]) for c, ch in enumerate(channels)]
        m.d.comb += [
            port.idle.eq(Cat(ch["idle"][i] for ch in channels).all())
            for i, port in enumerate(getattr(self, f"write{i}") for i in range(len(self.writes)))
        ]
        m.d.comb += [
            getattr(getattr(self, f"write{i}"), f"served{c}").eq(ch["served"][i])
            for i in range(len(self.writes))
            for c, ch in enumerate(channels)
        ]
        none = Const(-1, COUNTER_WIDTH)
        first = last = None
        for c, ch in enumerate(channels):
            earliest, latest = Signal(COUNTER_WIDTH, name=f"earliest{c}"), Signal(COUNTER_WIDTH, name=f"latest{c}")
            sooner, later = ch["read_any"], ch["write_any"]
            if first is not None:
                sooner &= ch["first_read"] < first
                later &= last.all() | (ch["last_write"] > last)
            m.d.comb += [
                earliest.eq(Mux(sooner, ch["first_read"], none if first is None else first)),
                latest.eq(Mux(later, ch["last_write"], none if last is None else last)),
            ]
            first, last = earliest, latest
        m.d.comb += [self.first_read_cycle.eq(first), self.last_write_cycle.eq(last)]
        return m

    def _channel(self, m, c):
        """Instances of channel ``c`` and of its contents; returns its outputs by name."""
        memory = self.memory
        wires: dict[str, Signal] = {}
        ports: dict[str, object] = {
            "i_clk": ClockSignal(),
            "i_rst": ResetSignal(),
            "i_start": self.start,
            "i_cycle": self.cycle,
        }
        requests = [f"read{i}" for i in range(len(self.reads))] + [f"write{i}" for i in range(len(self.writes))]
        for name in requests:
            request = getattr(getattr(self, name), f"req{c}")
            ports |= {
                f"i_{name}__valid": request.valid,
                f"i_{name}__payload": request.payload,
                f"o_{name}__ready": request.ready,
            }
        for i, port in enumerate(self.writes):
            unit = getattr(self, f"write{i}")
            ports[f"i_write{i}__payload"] = Cat(getattr(unit, f"req{c}").payload, port.share(unit.data, c))
        for path, member, _ in self.channel.signature.flatten(self.channel):
            name = "__".join(map(str, path))
            if member.flow == Out and path[0] not in requests:
                wires[name] = Signal(member.shape, name=f"channel{c}_{name}")
                ports[f"o_{name}"] = wires[name]
        m.submodules[f"channel{c}"] = Instance(self.channel.module_name, **ports)

        contents = Signal(8 * memory.burst_bytes, name=f"channel{c}_read_data")
        name, _ = store_module(memory.burst_bytes, memory.lines)
        m.submodules[f"store{c}"] = Instance(
            name,
            p_CHANNEL=c,
            i_clk=ClockSignal(),
            i_dump=self.dump,
            o_read_data=contents,
            **{
                f"i_{part}": wires[f"store_{part}"]
                for part in ("read_enable", "read_line", "write_enable", "write_line", "write_data")
            },
        )
        for i in range(len(self.reads)):
            resp = getattr(getattr(self, f"read{i}"), f"resp{c}")
            m.d.comb += [
                resp.valid.eq(wires["resp_valid"][i]),
                resp.slot.eq(wires["resp_slot"]),
                resp.q.eq(wires["resp_q"]),
            ]
        if self.reads:
            m.d.comb += getattr(self.data, f"channel{c}").eq(contents)
        return wires
