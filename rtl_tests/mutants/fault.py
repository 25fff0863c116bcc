"""A seeded fault, and the table of all."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["ROOT", "Fault", "FaultError", "Unit", "find", "seeded", "units"]

ROOT = Path(__file__).parents[2]


class FaultError(Exception):
    """A fault that cannot be seeded: it is not in the source (any more), or not in one place."""


@dataclass(frozen=True)
class Fault:
    """``old`` becomes ``new`` in ``file`` (path from the repository's root), where ``old`` stands exactly once.

    ``what`` it is, for people: dropped stop, off-by-one count, missed back-pressure. ``name``: ``<unit>/<number>``.
    ``first``: what the names of the tests contain that are run first (pytest's ``-k``), where one late in the bench is
    known to catch it; the others follow if none does.
    """

    name: str
    what: str
    file: str
    old: str
    new: str
    first: str = ""

    @property
    def module(self) -> str:
        """Importable name of the file."""
        return self.file.removesuffix(".py").replace("/", ".")

    def apply(self, source: str) -> str:
        """The faulty source. Raises `FaultError` when ``old`` is not there exactly once."""
        count = source.count(self.old)
        if count != 1 or self.old == self.new:
            raise FaultError(f"fault {self.name} ({self.what}): {self.file} has its text {count} times vs once; "
                             f"write the fault anew for the source as it now is: {self.old!r}")
        return source.replace(self.old, self.new)


@dataclass(frozen=True)
class Unit:
    """Faults of a unit and the bench that is to catch them: pytest arguments (files or tests; of these, the tests on
    Icarus are run)."""

    name: str
    bench: tuple[str, ...]
    faults: tuple[Fault, ...]


def seeded(name: str, bench: Sequence[str], **files: Sequence[tuple[str, ...]]) -> Unit:
    """The unit ``name``, its bench, and (what, old, new[, first]) of its faults by file: ``units_repeat`` is
    ``step_hw/units/repeat.py``, ``hbm/writing`` ``step_hw/hbm/writing.py``, ``link`` ``step_hw/link.py``."""
    faults: list[Fault] = []
    for file, rows in files.items():
        path = f"step_hw/units/{file.removeprefix('units_')}.py" if file.startswith("units_") else f"step_hw/{file}.py"
        faults += [Fault(f"{name}/{len(faults) + i}", what, path, *row)
                   for i, (what, *row) in enumerate(rows, start=1)]
    return Unit(name, tuple(bench), tuple(faults))


@cache
def units() -> dict[str, Unit]:
    """All units with faults, by name."""
    from . import units as package

    found = {}
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda info: info.name):
        unit = importlib.import_module(f"{package.__name__}.{info.name}").UNIT
        found[unit.name] = unit
    return found


def find(name: str) -> Fault:
    """The fault of this name. Raises `FaultError`."""
    for unit in units().values():
        for fault in unit.faults:
            if fault.name == name:
                return fault
    raise FaultError(f"fault {name!r} vs <unit>/<number> of {', '.join(units())}")
