"""Metadata of a scratchpad: the page shows what is built; the counts, by hand."""

from pathlib import Path

import step_hw
from step_hw.beat import BeatLayout
from step_hw.metadata import metadata_of, table
from step_hw.units.scratchpad import ScratchpadShape

PAGE = Path(step_hw.__file__).parents[1] / "docs" / "MEMORY.md"


def test_the_page_has_the_table():
    assert table() in PAGE.read_text(), "write the table of docs/MEMORY.md anew: python -m step_hw.metadata"


def test_bits_of_a_scratchpad():
    """16 frames of 32 bits in 8 pages, 5 buffers."""
    found = metadata_of(ScratchpadShape(16, 2, 5, BeatLayout(32, 2)))
    assert found.data == 16 * 32 and found.stops == 16 * (4 + 2)
    assert found.page_table == 5 * 8 * 3      # pages of 3 bits
    assert found.free_list == 8 * 3 + 2 * 3 + 2 * 4
    assert found.lengths == 5 * 5             # 0..16
    assert found.uses == 5 * (8 + 2 + 3)
    wide = metadata_of(ScratchpadShape(16, 2, 5, BeatLayout(32, 2), uses_bits=24))
    assert wide.uses == 5 * (24 + 2 + 3)      # of references that other data copy
    assert found.share == (120 + 38 + 25 + 65) / 512


def test_half_a_megabyte_stays_near_the_paper():
    """With pages of 1 KB and 64 buffers; larger pages cost less."""
    shares = [metadata_of(ScratchpadShape(1024, page, 64, BeatLayout(4096, 16))).share for page in (2, 4, 8)]
    assert 0.06 < shares[0] < 0.08 and shares[1] < shares[0] / 2 and shares[2] < shares[1] / 2
