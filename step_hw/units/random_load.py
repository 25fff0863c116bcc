"""Random load: the tile at each address of a stream."""

from step_lang.memory_config import MemoryConfig

from ..beat import BeatLayout
from .load import Load

__all__ = ["RandomLoad"]


class RandomLoad(Load):
    """Hardware of ``step_lang.ops.random_offchip_load``: a :class:`Load` whose indices come from ``in0``.

    Each element of ``in0`` is the index of an element of the tensor, whose stop the loaded element takes; bare stops
    and done pass in order. Timing as `Load`'s.

    Parameters
    ----------
    layout : BeatLayout
        Payload of the output. Its data bits are the low bits of the element in memory.
    address : BeatLayout
        Payload of the addresses, at most 32 bits.
    memory, element_bytes, window
        As of `Load`.

    Registers
    ---------
    base : byte address of the tensor, at a line.
    limit : elements of the tensor; an address outside, or a base within a line, sets ADDRESS_RANGE.
    """

    kind = "random_load"
    registers = {"base": 32, "limit": 32}

    def __init__(
        self, layout: BeatLayout, *, address: BeatLayout, memory: MemoryConfig, element_bytes: int, window: int = 64
    ):
        if not 1 <= address.data_width <= 32:
            raise ValueError(f"an address has 1..32 bits, not {address.data_width}")
        super().__init__(layout, memory=memory, element_bytes=element_bytes, window=window, reference=address)

    def _generate(self, m, have, advance, tok, index):
        address = self.in0
        m.d.comb += [
            have.eq(address.valid),
            tok.stop.eq(address.payload.stop),
            tok.empty.eq(address.payload.empty),
            tok.done.eq(address.payload.done),
            index.eq(address.payload.data),
            address.ready.eq(advance),
        ]
