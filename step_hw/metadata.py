"""What it costs a scratchpad to keep buffers of any size, non-contiguous, and to know when each is free.

``python -m step_hw.metadata`` prints the table of docs/MEMORY.md.
"""

from dataclasses import dataclass

from amaranth.utils import bits_for

from step_lang.mapping.registers import GENERATION_WIDTH

from .beat import BeatLayout
from .units.scratchpad import FrameLayout, ScratchpadShape

__all__ = ["Metadata", "metadata_of", "table"]

PAPER_SHARE = 0.06
"""What the paper's section 6.2 estimates for 512 KB."""

_FLAGS = 3   # of a buffer's number: taken, complete, dead


@dataclass(frozen=True)
class Metadata:
    """Bits of a scratchpad.

    data : elements; stops : the stop and count of rows beside each
    page_table : pages of each buffer; free_list : pages given back, with head, tail and counts
    lengths : elements of each buffer; uses : uses of each buffer, its flags and its generation
    """

    data: int
    stops: int
    page_table: int
    free_list: int
    lengths: int
    uses: int

    @property
    def bits(self) -> int:
        """Bits that allocation needs."""
        return self.page_table + self.free_list + self.lengths + self.uses

    @property
    def share(self) -> float:
        """Of the data."""
        return self.bits / self.data


def metadata_of(shape: ScratchpadShape) -> Metadata:
    """Bits of ``step_hw.units.scratchpad.Scratchpad``, as it is built."""
    pages, pointer = max(shape.pages, 2), bits_for(max(shape.pages, 2) - 1)
    return Metadata(
        data=shape.frames * shape.layout.data_width,
        stops=shape.frames * (FrameLayout(shape.layout).size - shape.layout.data_width),
        page_table=(shape.references << shape.page_bits) * shape.page_bits,
        free_list=pages * shape.page_bits + 2 * pointer + 2 * bits_for(shape.pages),
        lengths=shape.references * bits_for(shape.frames),
        uses=shape.references * (shape.uses_bits + GENERATION_WIDTH + _FLAGS),
    )


def _half_megabyte(tile: int, page_frames: int, references: int) -> ScratchpadShape:
    """512 KB of T x T tiles of bf16."""
    bits = tile * tile * 16
    return ScratchpadShape((512 << 13) // bits, page_frames, references, BeatLayout(bits, tile))


def table() -> str:
    """Metadata of several scratchpads of 512 KB, beside the paper's estimate."""
    lines = [
        "| tiles | page | buffers at once | page table | free list | lengths | uses | share of the data |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for tile, page_frames, references in ((16, 8, 64), (16, 4, 64), (16, 2, 64), (16, 8, 16), (8, 16, 64)):
        shape = _half_megabyte(tile, page_frames, references)
        found = metadata_of(shape)
        page = page_frames * shape.layout.data_width // 8
        lines.append(
            f"| {tile} x {tile} | {page_frames} tiles, {page:,} bytes | {references} | {found.page_table:,} | "
            f"{found.free_list:,} | {found.lengths:,} | {found.uses:,} | {found.share:.1%} |")
    lines.append(f"| the paper's estimate | | | | | | | about {PAPER_SHARE:.0%} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
