"""Off-chip memory as configured: channels, bursts, timing; and how elements lie on the channels.

Both the RTL (``step_hw.hbm``) and the performance model (``sim.units.hbm``) take every number from here.
"""

import hashlib
from dataclasses import dataclass, field, fields

from .errors import ConfigError

__all__ = ["BankTiming", "ElementLayout", "MemoryConfig"]


def _log2(value: int) -> int:
    return value.bit_length() - 1


def _power_of_two(value: int) -> bool:
    return value >= 1 and value & (value - 1) == 0


@dataclass(frozen=True)
class BankTiming:
    """Timings of the ``banked`` memory model in cycles of the controller clock (JEDEC names in brackets).

    Defaults: one pseudo-channel pair of HBM2-like memory, controller at 1 GHz, 64-byte bursts.
    """

    banks: int = 16
    """Banks of a channel."""
    row_bytes: int = 1024
    """Bytes of one open row (page) of a bank."""
    burst_cycles: int = 2
    """Data bus cycles of one burst [BL / rate]."""
    ccd: int = 2
    """Column command to column command, same channel [tCCD]."""
    rcd: int = 14
    """Activate to column command, same bank [tRCD]."""
    rp: int = 14
    """Precharge to activate, same bank [tRP]."""
    ras: int = 33
    """Activate to precharge, same bank [tRAS]."""
    rtp: int = 5
    """Read command to precharge, same bank [tRTP]."""
    wr: int = 16
    """End of write data to precharge, same bank [tWR]."""
    rrd: int = 4
    """Activate to activate, different banks [tRRD]."""
    faw: int = 16
    """Window in which at most four activates may start [tFAW]."""
    rfc: int = 260
    """Refresh command to the next activate [tRFC]."""
    refi: int = 3900
    """Interval of refresh commands, 0 for none [tREFI]."""
    cl: int = 14
    """Read command to first data [CL, read latency]."""
    cwl: int = 4
    """Write command to first data [CWL, write latency]."""
    wtr: int = 8
    """End of write data to read command [tWTR]."""
    queue: int = 8
    """Bursts the scheduler of a channel looks at."""

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            least = 0 if item.name == "refi" else 1
            if not isinstance(value, int) or value < least or value > 65535:
                raise ConfigError(f"memory.bank.{item.name} = {value!r}, expected an integer from {least} to 65535")
        if not _power_of_two(self.banks):
            raise ConfigError(f"memory.bank.banks = {self.banks}, expected a power of two")
        if not _power_of_two(self.row_bytes):
            raise ConfigError(f"memory.bank.row_bytes = {self.row_bytes}, expected a power of two")
        if self.ccd < self.burst_cycles:
            raise ConfigError(f"memory.bank.ccd = {self.ccd} is less than burst_cycles = {self.burst_cycles}: "
                              "bursts would overlap on the data bus")
        if self.queue > 64:
            raise ConfigError(f"memory.bank.queue = {self.queue}, expected at most 64")
        if self.refi and self.refi <= self.rfc + self.rp + self.ras:
            raise ConfigError(f"memory.bank.refi = {self.refi} leaves no time between refreshes of rfc = {self.rfc} cycles")


@dataclass(frozen=True)
class ElementLayout:
    """How elements of one size lie on the channels.

    An element takes ``bursts`` consecutive lines on each of ``span`` channels; ``groups`` elements lie side by side in
    a line, and ``per_burst`` elements share a burst. Element i of a tensor is at line ``base + (i // per_line) * bursts``,
    channels ``g * span .. g * span + span - 1`` with ``g = i // per_burst % groups``, byte ``i % per_burst * element_bytes``.
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


@dataclass(frozen=True)
class MemoryConfig:
    """The ``[memory]`` section of a hardware configuration.

    ``model`` is ``"simple"`` (per channel: a burst every ``interval`` cycles, ``latency`` cycles from request to data,
    ``startup`` more cycles before the first burst of a run) or ``"banked"`` (``bank``). Addresses are interleaved over
    ``channels`` by bursts of ``burst_bytes``; a **line** is one burst on every channel, and tensors begin at lines
    (``alignment``). ``capacity_bytes`` is the size of the whole memory.
    """

    model: str = "simple"
    channels: int = 4
    burst_bytes: int = 64
    capacity_bytes: int = 1 << 23
    interval: int = 2
    latency: int = 14
    startup: int = 0
    bank: BankTiming = field(default_factory=BankTiming)

    def __post_init__(self) -> None:
        if self.model not in ("simple", "banked"):
            raise ConfigError(f"memory.model = {self.model!r}, expected 'simple' or 'banked'")
        for name in ("channels", "burst_bytes", "capacity_bytes"):
            value = getattr(self, name)
            if not isinstance(value, int) or not _power_of_two(value):
                raise ConfigError(f"memory.{name} = {value!r}, expected a power of two")
        if self.burst_bytes < 4:
            raise ConfigError(f"memory.burst_bytes = {self.burst_bytes}, expected at least 4, the bytes of a scalar")
        for name, least in (("interval", 1), ("latency", 2), ("startup", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or not least <= value <= 65535:
                raise ConfigError(f"memory.{name} = {value!r}, expected an integer from {least} to 65535")
        if self.lines < 2:
            raise ConfigError(f"memory.capacity_bytes = {self.capacity_bytes} is less than two lines of {self.alignment} bytes")
        if self.model == "banked" and self.bank.row_bytes < self.burst_bytes:
            raise ConfigError(f"memory.bank.row_bytes = {self.bank.row_bytes} is less than memory.burst_bytes = {self.burst_bytes}")

    @property
    def alignment(self) -> int:
        """Bytes of a line, to which the base address of every tensor is aligned."""
        return self.channels * self.burst_bytes

    @property
    def lines(self) -> int:
        """Lines of the memory, which is bursts of one channel."""
        return self.capacity_bytes // self.alignment

    @property
    def peak_bytes_per_cycle(self) -> float:
        """Bandwidth of all channels."""
        return self.alignment / (self.interval if self.model == "simple" else self.bank.ccd)

    @property
    def key(self) -> str:
        """Short text for module names; differs when anything but the capacity differs."""
        size = f"c{self.channels}b{self.burst_bytes}"
        if self.model == "simple":
            return f"{size}_simple_i{self.interval}l{self.latency}s{self.startup}"
        text = " ".join(f"{item.name}={getattr(self.bank, item.name)}" for item in fields(self.bank))
        return f"{size}_banked_{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    def layout(self, element_bytes: int) -> ElementLayout:
        """Layout of elements of ``element_bytes``, a power of two; ``ConfigError`` for other sizes."""
        if not _power_of_two(element_bytes):
            raise ConfigError(f"off-chip element of {element_bytes} bytes, expected a power of two",
                              fix="choose a tile size and type whose bytes are a power of two")
        bursts = max(1, element_bytes // self.burst_bytes)
        span = min(bursts, self.channels)
        return ElementLayout(element_bytes, bursts // span, span, self.channels // span,
                             max(1, self.burst_bytes // element_bytes))
