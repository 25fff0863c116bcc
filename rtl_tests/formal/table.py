"""docs/FORMAL.md: what is proven of each unit, to which depth. Write it anew:
``python -m rtl_tests.formal.table`` (with names of files in ``units/``: their rows)."""

import re
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from .case import Case
from .catalogue import cases

__all__ = ["PAGE", "head", "row", "without_seconds"]

PAGE = Path(__file__).parents[2] / "docs" / "FORMAL.md"

_HEAD = """# What is proven of the units' control

Written by `python -m rtl_tests.formal.table`; the deep tests do every proof of it again. How it is done:
`rtl_tests/formal/__init__.py`.

A unit of narrow beats stands in free surroundings. Its inputs are any streams that keep valid and payload until a beat
is taken and obey the grammar of stop tokens, with any gaps; its outputs are taken at any time; its registers have any
constant values that mean something. For all of these every property holds in each of the first **cycles**; where
**induction** says *yes, k*, it holds for ever: k cycles in which it held, from whatever state, are always followed by
another. The induction rests on invariants that tie the unit's registers to the reference model; they are proven too.

**faults**: seeded in the unit's source, each of which the bounded proof (without the invariants) finds. **seconds**:
of both proofs, on one core.

What no row names is left to the benches: datapaths; an accum that is open with two inner dimensions; a
streamify in order with a reference; a partition and its scratchpad together; views of more than two loops; more
outputs, channels, elements or streamifies than a row says.

| unit | properties | cycles | induction | faults | seconds |
|---|---|---|---|---|---|
"""


def head() -> str:
    """What stands above the rows."""
    return _HEAD


def row(case: Case, seconds: float) -> str:
    """The row of a proof that took ``seconds``."""
    closed = "no" if case.induction is None else f"yes, {case.induction}"
    # The same of several ports once.
    texts = "; ".join(dict.fromkeys(re.sub(r"^(in|out)\d+ ", r"\1put ", text) for text in case.properties()))
    return f"| {case.unit} | {texts} | {case.depth} | {closed} | {len(case.faults)} | {seconds:.1f} |"


def without_seconds(line: str) -> str:
    """A row as it is on every machine."""
    return re.sub(r"\| [\d.]+ \|$", "|", line)


def main(units: Sequence[str]) -> None:
    """Do the proofs of ``units`` (files of ``units/``; none: all) and write their rows, keeping the others."""
    text = PAGE.read_text() if PAGE.exists() else ""
    old = {line.split(" | ")[0]: line for line in text.splitlines()}
    lines = []
    for case in cases():
        file = case.build.func if isinstance(case.build, partial) else case.build
        known = old.get(f"| {case.unit}")
        if units and known and file.__module__.rpartition(".")[2] not in units:
            lines.append(known)
            continue
        verdicts = [case.prove()] + ([case.induct()] if case.induction is not None else [])
        if not all(verdict.holds for verdict in verdicts):
            raise SystemExit(f"{case.unit}: {verdicts}")
        lines.append(row(case, sum(verdict.seconds for verdict in verdicts)))
        print(lines[-1])
    PAGE.write_text(head() + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
