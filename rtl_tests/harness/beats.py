"""The beat as Python sees it: five integers, and the bit layout of a link's payload (docs/DESIGN.md, section 2)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["DONE", "Beat", "LinkLayout", "bare", "beats", "layout_of", "show"]


class Beat(NamedTuple):
    """What a link moves in one cycle. ``data`` is the payload's bits as one unsigned int."""

    data: int = 0
    rows: int = 1
    stop: int = 0
    empty: int = 0
    done: int = 0

    def __str__(self) -> str:
        if self.done:
            return "D"
        if self.empty:
            return f"S{self.stop}"
        value = f"{self.data:#x}" if self.data > 9 else str(self.data)
        rows = f"/{self.rows}" if self.rows != 1 else ""
        return f"{value}{rows}" + (f" S{self.stop}" if self.stop else "")


#: End of a stream.
DONE = Beat(0, 0, 0, 1, 1)


def bare(stop: int) -> Beat:
    """A stop without an element."""
    return Beat(0, 0, stop, 1, 0)


def beats(text: str, rows: int = 1) -> list[Beat]:
    """Beats from SPEC's notation: ``beats("1 2 S1 S1 3 S2 D")``.

    A stop right after an element is fused with it; any other stop is bare. Elements are integers (``0x..`` too).
    """
    made: list[Beat] = []
    fusable = False
    for word in text.split():
        if word == "D":
            made.append(DONE)
            fusable = False
        elif word[0] == "S":
            level = int(word[1:])
            if fusable:
                made[-1] = made[-1]._replace(stop=level)
            else:
                made.append(bare(level))
            fusable = False
        else:
            made.append(Beat(int(word, 0), rows))
            fusable = True
    return made


def show(stream: Iterable[Beat]) -> str:
    """Beats in SPEC's notation, the inverse of `beats` (for elements of one row)."""
    return " ".join(map(str, stream))


@dataclass(frozen=True)
class LinkLayout:
    """Widths of a link's payload fields, least significant first: data, rows, stop, empty, done."""

    data: int
    rows: int = 1
    stop: int = 4

    @property
    def width(self) -> int:
        """Bits of the whole payload."""
        return self.data + self.rows + self.stop + 2

    def pack(self, beat: Beat) -> int:
        """Payload bits of ``beat``; ValueError if a field does not fit."""
        word = 0
        at = 0
        for name, value, width in zip(beat._fields, beat, (self.data, self.rows, self.stop, 1, 1), strict=True):
            if not 0 <= value < 1 << width:
                raise ValueError(f"beat field {name} = {value:#x} does not fit {width} bits")
            word |= int(value) << at
            at += width
        return word

    def unpack(self, word: int) -> Beat:
        """Beat of payload bits, the inverse of `pack`."""
        values = []
        for width in (self.data, self.rows, self.stop, 1, 1):
            values.append(word & ((1 << width) - 1))
            word >>= width
        return Beat(*values)


def layout_of(shape) -> LinkLayout:
    """Layout of an Amaranth payload shape (`step_hw.beat.BeatLayout` or a struct with the same five fields)."""
    widths: dict[str, int] = {name: field.width for name, field in shape}
    wanted = ["data", "rows", "stop", "empty", "done"]
    if list(widths) != wanted or widths["empty"] != 1 or widths["done"] != 1:
        raise ValueError(f"a link's payload has the fields {', '.join(wanted)}, not {widths}")
    return LinkLayout(widths["data"], widths["rows"], widths["stop"])


def streams_of(stream: Sequence[Beat]) -> list[list[Beat]]:
    """Split at each done (which stays with its stream); a tail without done is a last, unfinished stream."""
    found: list[list[Beat]] = [[]]
    for beat in stream:
        found[-1].append(beat)
        if beat.done:
            found.append([])
    return found if found[-1] else found[:-1]
