"""Figures as CSV."""

from __future__ import annotations

import csv
from pathlib import Path

from .figure import Figure

__all__ = ["format_value", "write_claims", "write_rows"]


def format_value(value: object) -> str:
    """Integers as they are, other numbers with six digits."""
    if isinstance(value, bool) or not isinstance(value, float):
        return "" if value is None else str(value)
    return f"{value:.6g}"


def write_rows(figure: Figure, path: Path) -> None:
    """The figure's table."""
    _write(path, [figure.columns, *figure.rows])


def write_claims(figure: Figure, path: Path) -> None:
    """The paper's numbers beside ours; a range in two rows."""
    rows: list[tuple] = [("what", "paper", "ours", "ratio", "bar", "within", "source", "why")]
    for claim in figure.claims:
        papers = claim.paper if isinstance(claim.paper, tuple) else (claim.paper,)
        ours = claim.ours if isinstance(claim.ours, tuple) else (claim.ours,)
        ends = ("",) if len(papers) == 1 else (", low end", ", high end")
        for end, paper, own, ratio in zip(ends, papers, ours, claim.ratios):
            rows.append((claim.what + end, paper, own, ratio, claim.bar, claim.within, claim.source, claim.why))
    _write(path, rows)


def _write(path: Path, rows: list[tuple]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([format_value(value) for value in row] for row in rows)
