"""Off-chip memory as configured: channels, bursts, timing; and how elements lie on the channels.

Both the RTL (``step_hw.hbm``) and the performance model (``sim.units.hbm``) take every number from here.
"""

import hashlib
from dataclasses import dataclass, field, fields
from typing import Any

from .errors import ConfigError

__all__ = ["ElementLayout", "MemoryConfig"]


def _power_of_two(value: int) -> bool:
    return value >= 1 and value & (value - 1) == 0


@dataclass(frozen=True)
class ElementLayout:
    """How elements of one size lie on the channels.

    An element takes ``bursts`` consecutive lines on each of ``span`` channels; ``groups`` elements lie side by side in
    a line, and ``per_burst`` elements share a burst. Element i of a tensor is at line ``base + (i // per_line) *
    bursts``,
    channels ``g * span .. g * span + span - 1`` with ``g = i // per_burst % groups``, byte ``i % per_burst *
    element_bytes``.
    """

    element_bytes: int
    bursts: int
    span: int
    groups: int
    per_burst: int

    @property
    def per_line(self) -> int:
        """Elements that begin in one line."""
        return self.groups * self.per_burst

    @property
    def burst_bytes(self) -> int:
        """Useful bytes of one burst."""
        return self.element_bytes // (self.bursts * self.span)


def _key(default: object, least: int, meaning: str) -> Any:
    return field(default=default, metadata={"least": least, "meaning": meaning})


def _time(default: int, meaning: str) -> Any:
    return field(default=default, metadata={"least": 1, "meaning": f"banked, cycles: {meaning}", "banked": True})


@dataclass(frozen=True)
class MemoryConfig:
    """The ``[memory]`` section of a hardware configuration; every field's metadata say what it means.

    Addresses are interleaved over the channels by bursts; a **line** is one burst on every channel, and tensors
    begin at
    lines (``alignment``). Cycles are those of the whole design's one clock; the defaults of ``banked`` are those of
    HBM2-like
    memory at 1 GHz. Raises `ConfigError` for a value that is not allowed.
    """

    model: str = _key(
        "simple", 0, "timing model: 'simple' (interval, latency, startup) or 'banked' (banks, rows, refresh)"
    )
    channels: int = _key(4, 1, "memory channels, a power of two")
    burst_bytes: int = _key(
        64, 4, "bytes of a burst, a power of two; addresses are interleaved over channels by bursts"
    )
    capacity_bytes: int = _key(1 << 23, 8, "size of the whole memory, a power of two")
    interval: int = _key(2, 1, "simple: cycles from one burst of a channel to the next")
    latency: int = _key(14, 2, "simple: cycles from a channel taking a read burst to its data")
    startup: int = _key(0, 0, "simple: more cycles before a channel takes the first burst of a run")
    banks: int = field(
        default=16, metadata={"least": 1, "meaning": "banked: banks of a channel, a power of two", "banked": True}
    )
    row_bytes: int = field(
        default=1024, metadata={"least": 4, "meaning": "banked: bytes of an open row of a bank", "banked": True}
    )
    queue: int = field(
        default=16,
        metadata={"least": 1, "meaning": "banked: bursts a channel's scheduler chooses from", "banked": True},
    )
    bl: int = _time(2, "data bus time of a burst [BL]")
    tccd: int = _time(2, "column command to column command [tCCD]")
    trcd: int = _time(14, "activate to column command of the bank [tRCD]")
    trp: int = _time(14, "precharge to activate of the bank [tRP]")
    tras: int = _time(33, "activate to precharge of the bank [tRAS]")
    trtp: int = _time(5, "read command to precharge of the bank [tRTP]")
    twr: int = _time(16, "end of write data to precharge of the bank [tWR]")
    twtr: int = _time(8, "end of write data to read command [tWTR]")
    trrd: int = _time(4, "activate to activate of another bank [tRRD]")
    tfaw: int = _time(16, "window in which at most four activates start [tFAW]")
    trfc: int = _time(260, "refresh command to the next activate [tRFC]")
    trefi: int = field(
        default=3900,
        metadata={"least": 0, "meaning": "banked, cycles: from refresh to refresh, 0 for none [tREFI]", "banked": True},
    )
    cl: int = _time(14, "read command to data [CL]")
    cwl: int = _time(4, "write command to data [CWL]")

    def __post_init__(self) -> None:
        if self.model not in ("simple", "banked"):
            raise ConfigError(f"memory.model: {self.model!r} vs 'simple' or 'banked'")
        for entry in fields(self)[1:]:
            value, least = getattr(self, entry.name), entry.metadata["least"]
            most = 1 << 40 if entry.name.endswith("bytes") else 65535
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                raise ConfigError(f"memory.{entry.name}: {value!r} vs an int in {least}..{most}")
        for name in ("channels", "burst_bytes", "capacity_bytes", "banks", "row_bytes"):
            if not _power_of_two(getattr(self, name)):
                raise ConfigError(f"memory.{name}: {getattr(self, name)} vs a power of two")
        if self.capacity_bytes < 2 * self.alignment:
            raise ConfigError(
                f"memory.capacity_bytes: {self.capacity_bytes} vs two lines of {self.alignment} bytes or more"
            )
        if self.model == "banked":
            self._check_banked()

    def _check_banked(self) -> None:
        if self.row_bytes < self.burst_bytes:
            raise ConfigError(f"memory.row_bytes: {self.row_bytes} vs burst_bytes = {self.burst_bytes} or more")
        if self.tccd < self.bl:
            raise ConfigError(
                f"memory.tccd: {self.tccd} vs bl = {self.bl} or more, lest bursts overlap on the data bus"
            )
        if self.queue > 32:
            raise ConfigError(f"memory.queue: {self.queue} vs an int in 1..32")
        if self.trefi and self.trefi < 2 * self.trfc:
            raise ConfigError(
                f"memory.trefi: {self.trefi} vs twice trfc = {self.trfc} or more, else there is little but refresh"
            )

    @property
    def alignment(self) -> int:
        """Bytes of a line, to which the base address of every tensor is aligned."""
        return self.channels * self.burst_bytes

    @property
    def lines(self) -> int:
        """Lines of the memory, which is bursts of one channel."""
        return self.capacity_bytes // self.alignment

    @property
    def burst_interval(self) -> int:
        """Cycles a channel is busy with a burst at best."""
        return self.interval if self.model == "simple" else self.tccd

    @property
    def peak_bytes_per_cycle(self) -> float:
        """Bandwidth of all channels."""
        return self.alignment / self.burst_interval

    def least_cycles(self, nbytes: int) -> int:
        """No run that moves ``nbytes`` takes fewer cycles from the first burst that a channel takes to the last, both
        included: the last one's time on the bus is not among them. ``banked`` takes bursts ahead, as many as queue."""
        bursts = -(-nbytes // self.alignment)   # of the busiest channel
        if self.model == "simple" or not bursts:
            return max(0, (bursts - 1) * self.interval + 1)
        return max(bursts, (bursts - self.queue - 1) * self.tccd + 1)

    def most_bytes(self, cycles: int) -> int:
        """The most bytes that a run can move with ``cycles`` from its first burst to its last, both included."""
        if cycles < 1:
            return 0
        bursts = (cycles - 1) // self.burst_interval + 1
        return self.alignment * (bursts if self.model == "simple" else min(cycles, bursts + self.queue))

    @property
    def key(self) -> str:
        """Short text for module names; differs when anything but the capacity differs."""
        size = f"c{self.channels}b{self.burst_bytes}"
        if self.model == "simple":
            return f"{size}_simple_i{self.interval}l{self.latency}s{self.startup}"
        text = " ".join(
            f"{entry.name}={getattr(self, entry.name)}" for entry in fields(self) if entry.metadata.get("banked")
        )
        return f"{size}_banked_{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    def layout(self, element_bytes: int) -> ElementLayout:
        """Layout of elements of ``element_bytes``, a power of two; ``ConfigError`` for other sizes."""
        if not _power_of_two(element_bytes):
            raise ConfigError(
                f"off-chip element: {element_bytes} bytes vs a power of two",
                fix="choose a tile size and type whose bytes are a power of two",
            )
        bursts = max(1, element_bytes // self.burst_bytes)
        span = min(bursts, self.channels)
        return ElementLayout(
            element_bytes, bursts // span, span, self.channels // span, max(1, self.burst_bytes // element_bytes)
        )
