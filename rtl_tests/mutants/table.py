"""docs/MUTANTS.md: faults of each unit, and which test of its bench caught how many of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from .fault import ROOT, Unit, units
from .run import Outcome

__all__ = ["PAGE", "head", "named_faults", "row", "rows_of", "write"]

PAGE = ROOT / "docs" / "MUTANTS.md"

_HEAD = """# Faults that the benches catch

Written by `python -m rtl_tests.mutants --table`, which seeds every fault of `rtl_tests/mutants/units` into the unit's
source, one at a time, and runs the unit's bench on Icarus until a test fails; the deep tests do it again. A fault that
cannot be elaborated is no fault. **caught by**: the first test that failed, and for how many faults it was the first.
A unit without a row has not been run whole since its faults were written.

| unit | faults | survived | caught by |
|---|---|---|---|
"""


def head() -> str:
    """What stands above the rows."""
    return _HEAD


def row(unit: Unit, outcomes: Sequence[Outcome]) -> str:
    """The row of a unit all of whose faults were run."""
    first: Counter[str] = Counter()
    for outcome in outcomes:
        if outcome.test is not None:
            first[_short(outcome.test, unit)] += 1
    tests = ", ".join(f"{test} {count}" for test, count in sorted(first.items(), key=lambda item: (-item[1], item[0])))
    return f"| {unit.name} | {len(outcomes)} | {sum(not o.caught for o in outcomes)} | {tests} |"


def _short(test: str, unit: Unit) -> str:
    """``test_rate`` of ``rtl_tests/test_pack_rows.py::test_rate[icarus-2]``; with the file where the unit has two."""
    file, _, name = re.sub(r"\[.*", "", test).partition("::")
    files = {bench.partition("::")[0] for bench in unit.bench}
    return f"`{name}`" if len(files) == 1 else f"`{Path(file).stem}::{name}`"


def rows_of(text: str) -> dict[str, str]:
    """The rows of a page, by unit."""
    return {line.split(" | ")[0].removeprefix("| "): line for line in text.splitlines()
            if re.match(r"\| \w+ \| \d+ \|", line)}


def named_faults(line: str) -> tuple[int, int]:
    """Faults and survivors that a row says."""
    _, faults, survived, _ = line.strip("| ").split(" | ")
    return int(faults), int(survived)


def write(rows: Mapping[str, str], page: Path = PAGE) -> None:
    """The page with these rows (by unit), the others as they were."""
    known = {**rows_of(page.read_text() if page.exists() else ""), **rows}
    page.write_text(head() + "".join(known[name] + "\n" for name in units() if name in known))
