"""Interfaces between load and store units and the memory system.

Wide data travel once: each channel's read data go to all loads on one bus (`ReadData`), a store shows its element to
all channels on another. A bus for each port and channel would be more bits than a module of Amaranth can have.
"""

from amaranth.hdl import Cat, Value, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2, exact_log2

from step_lang.memory_config import MemoryConfig

__all__ = ["ReadData", "ReadPort", "WritePort"]


class ReadData(wiring.Signature):
    """The memory system's side of the read data, which all load units see.

    Members
    -------
    channel<c> : Out(8 * burst_bytes), one per channel
        The burst that a ``resp<c>`` of some `ReadPort` announces in this cycle.
    """

    def __init__(self, memory: MemoryConfig):
        super().__init__({f"channel{c}": Out(8 * memory.burst_bytes) for c in range(memory.channels)})


class ReadPort(wiring.Signature):
    """A load unit's side of the memory system.

    Parameters
    ----------
    memory : MemoryConfig
    element_bytes : int
    window : int
        Elements that may be in flight, a power of two; requests are tagged by the window slot.

    Members
    -------
    req<c> : Out(stream of {line, slot}), one per channel
        Asks for the element's bursts on this channel, lines ``line .. line + bursts - 1``.
    resp<c> : In({valid, slot, q}), one per channel
        One burst, the q-th of the element in this slot on this channel, is on the channel's `ReadData`; always
        accepted. Bursts may come in any order.
    """

    def __init__(self, memory: MemoryConfig, element_bytes: int, window: int):
        if window < 2 or window & (window - 1):
            raise ValueError(f"a reorder window holds a power of two of elements, at least 2, not {window}")
        self.memory = memory
        self.window = window
        self.elements = memory.layout(element_bytes)
        self.slot_width = exact_log2(window)
        self.q_width = exact_log2(self.elements.bursts)
        self.request = data.StructLayout({"line": ceil_log2(memory.lines), "slot": self.slot_width})
        self.response = wiring.Signature(
            {
                "valid": Out(1),
                "slot": Out(self.slot_width),
                # One unused bit where an element has a single burst: Verilog has no ports of width 0.
                "q": Out(max(1, self.q_width)),
            }
        )
        super().__init__(
            {f"req{c}": Out(stream.Signature(self.request)) for c in range(memory.channels)}
            | {f"resp{c}": In(self.response) for c in range(memory.channels)}
        )


class WritePort(wiring.Signature):
    """A store unit's side of the memory system.

    Parameters
    ----------
    memory : MemoryConfig
    element_bytes : int

    Members
    -------
    data : Out(8 * element_bytes)
        The element, lowest byte first; stable while a request is valid and not taken.
    req<c> : Out(stream of {line, position}), one per channel
        Asks for the element's bursts on this channel to be written, lines ``line .. line + bursts - 1``; ``position``
        is the element's place in its burst where several share one (else absent).
    served<c> : In(1), one per channel
        The channel accepts the last burst that an element has there; elements of a channel are served in order.
    idle : In(1)
        Every burst of this port has been accepted by its channel.

    Attributes
    ----------
    queued : StructLayout {line, position, data}
        What a channel is handed of a request: its bursts of the element (`share`), first line lowest.
    """

    def __init__(self, memory: MemoryConfig, element_bytes: int):
        self.memory = memory
        self.elements = memory.layout(element_bytes)
        place = {"line": ceil_log2(memory.lines), "position": exact_log2(self.elements.per_burst)}
        self.request = data.StructLayout(place)
        self.queued = data.StructLayout(
            place | {"data": unsigned(8 * self.elements.burst_bytes * self.elements.bursts)}
        )
        super().__init__(
            {f"req{c}": Out(stream.Signature(self.request)) for c in range(memory.channels)}
            | {f"served{c}": In(1) for c in range(memory.channels)}
            | {"idle": In(1), "data": Out(8 * element_bytes)}
        )

    def share(self, element: Value, channel: int) -> Value:
        """Bursts of ``element`` on ``channel``, first line lowest: burst k lies on channel group * span + k % span, and
        only channels of the element's group are asked, so that it does not matter which that is."""
        span, width = self.elements.span, 8 * self.elements.burst_bytes
        return Cat(element.word_select(q * span + channel % span, width) for q in range(self.elements.bursts))
