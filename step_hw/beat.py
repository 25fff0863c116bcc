"""The beat: what one link moves in one cycle."""

from amaranth.hdl import unsigned
from amaranth.lib import data, stream
from amaranth.utils import bits_for

__all__ = ["STOP_WIDTH", "BeatLayout", "beat_signature"]

STOP_WIDTH = 4
"""Bits of the stop level: ranks up to 15, enough for a paper-size program in physical tiling (two more dimensions)."""


class BeatLayout(data.StructLayout):
    """Payload of a link.

    Parameters
    ----------
    data_width : int
        Bits of the element: ``T * T * element bits`` for a physical tile, 32 for a scalar, ...
    max_rows : int
        Largest count of valid rows an element can have (T for tiles, 1 otherwise).

    Members (least significant first)
    ---------------------------------
    data, rows, stop, empty, done : see docs/DESIGN.md, section 2.
    """

    def __init__(self, data_width: int, max_rows: int = 1):
        if data_width < 1:
            raise ValueError(f"a beat needs at least one data bit, not {data_width}")
        if max_rows < 1:
            raise ValueError(f"a beat holds at least one row, not {max_rows}")
        self.data_width = data_width
        self.max_rows = max_rows
        super().__init__({
            "data": unsigned(data_width),
            "rows": unsigned(bits_for(max_rows)),
            "stop": unsigned(STOP_WIDTH),
            "empty": unsigned(1),
            "done": unsigned(1),
        })

    @property
    def key(self) -> str:
        """Short text that tells layouts apart in module names."""
        return f"{self.data_width}x{self.max_rows}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BeatLayout) and (self.data_width, self.max_rows) == (other.data_width, other.max_rows)

    def __hash__(self) -> int:
        return hash((self.data_width, self.max_rows))


def beat_signature(layout: BeatLayout) -> stream.Signature:
    """The stream signature of a link with this payload."""
    return stream.Signature(layout)
