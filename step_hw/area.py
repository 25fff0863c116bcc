"""The table docs/AREA.md: what every unit synthesises to.

``python -m step_hw.area > docs/AREA.md`` writes it; ``python -m step_hw.area link fork`` prints single rows.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .cells.area import Area, area_of_text, yosys_version
from .unit import Unit
from .unit_catalogue import unit_catalogue

__all__ = ["TILE", "head", "main", "row", "table", "unit_area"]

TILE = 4
"""Size of the physical tiles that the table is for."""

_HEAD = """\
# Area of the units

Generic synthesis with {version}, no technology library: two-input gates, multiplexers and inverters after abc's
`strash; balance; map`, one-bit flip-flops, and bits of memories, which a RAM or register file would hold (a ROM for
the tables of exp, silu, gelu, sigmoid and rsqrt). Units are those of `step_hw/unit_catalogue.py` on T = {tile} tiles
of bf16 where the name says nothing else, with one row of cells; the memory system (`hbm`) is counted without the
devices it stands for. Each module is synthesised on its own and counted once per instance. Gate counts compare units
and versions of a unit; what a technology makes of them differs: mapping without SAT-based passes counts more than
twice what Yosys' default `synth` finds in a divider (reciprocal 1216 against 535), and slightly less elsewhere
(rsqrt 410 against 441).

Written by `python -m step_hw.area > docs/AREA.md`; `rtl_tests/test_area.py` checks it.

| unit | gates | flip-flops | memory bits | module |
|---|--:|--:|--:|---|
"""


def unit_area(unit: Unit) -> Area:
    """Area of ``unit`` and the cells it instantiates."""
    modules = unit.modules()
    return area_of_text(modules, unit.module_name, [name for name in modules if name.startswith("hbm_store_")])


def row(name: str, unit: Unit) -> str:
    """The table's row of ``unit``."""
    area = unit_area(unit)
    return (f"| {name} | {area.gate_count:,} | {area.flip_flops:,} | {area.memory_bits:,} | `{unit.module_name}` |")


def head(version: str) -> str:
    """The page up to its first row, for this version of Yosys."""
    return _HEAD.format(version=version, tile=TILE)


def table() -> str:
    """The whole page."""
    lines = []
    for name, unit in unit_catalogue(TILE).items():
        lines.append(row(name, unit))
        print(lines[-1], file=sys.stderr, flush=True)
    return head(yosys_version()) + "\n".join(lines) + "\n"


def main(names: Sequence[str]) -> None:
    """Print the page, or the rows of the units that are named."""
    if not names:
        sys.stdout.write(table())
        return
    units = unit_catalogue(TILE)
    unknown = [name for name in names if name not in units]
    if unknown:
        sys.exit(f"error: no unit {unknown[0]!r} vs {', '.join(units)}")
    for name in names:
        print(row(name, units[name]))


if __name__ == "__main__":
    main(sys.argv[1:])
