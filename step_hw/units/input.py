"""Input: values the host provides, kept off-chip and read through the memory interface."""

from step_lang.memory_config import MemoryConfig

from ..beat import BeatLayout
from .load import Load

__all__ = ["Input"]


class Input(Load):
    """Hardware of ``step_lang.ops.input_stream``: a :class:`Load` without reference.

    Where the stream's shape is a box its tokens come from the counters (register ``regular`` = 1), else from a token
    memory that the host fills while the unit is idle: in a cycle with ``token_write``, ``token_data`` (stop, empty,
    done from the low bit) goes to ``token_address``. The list ends with done; elements lie in consecutive places.

    Parameters
    ----------
    tokens : int
        Size of the token memory, a power of two.
    """

    kind = "input"

    def __init__(
        self, layout: BeatLayout, *, memory: MemoryConfig, element_bytes: int, window: int = 64, tokens: int = 256
    ):
        if tokens < 2:
            raise ValueError(f"an input unit's token memory holds at least 2 tokens, not {tokens}")
        super().__init__(layout, memory=memory, element_bytes=element_bytes, window=window, tokens=tokens)
