"""What a figure is: rows of numbers, and the paper's claims beside ours."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["Claim", "Figure"]

_ISSUE = "bar"


@dataclass(frozen=True)
class Claim:
    """A number of the paper and ours.

    what : in a few words; paper : its number, or (low, high) of its range; ours : the same of ours; source : where the
    paper says it; bar : how far ours may be off, as a share of the paper's number, None where nothing is demanded;
    at_most, at_least : the paper's number is a bound; why : what an experiment showed where ours is beyond the bar
    """

    what: str
    paper: float | tuple[float, float]
    ours: float | tuple[float, float]
    source: str
    bar: float | None = None
    at_most: bool = False
    at_least: bool = False
    why: str = ""

    @property
    def ratios(self) -> tuple[float, ...]:
        """Ours over the paper's, for each end of a range."""
        if isinstance(self.paper, tuple):
            assert isinstance(self.ours, tuple)
            return tuple(o / p for o, p in zip(self.ours, self.paper))
        assert not isinstance(self.ours, tuple)
        return (self.ours / self.paper,)

    @property
    def within(self) -> bool | None:
        """Whether ours is within the bar, None where there is none."""
        if self.at_most or self.at_least:
            assert not isinstance(self.ours, tuple) and not isinstance(self.paper, tuple)
            return self.ours <= self.paper if self.at_most else self.ours >= self.paper
        if self.bar is None:
            return None
        return all(abs(ratio - 1) <= self.bar + 1e-12 for ratio in self.ratios)

    def as_json(self) -> dict[str, Any]:
        """All of it, ratios and verdict included."""
        return asdict(self) | {"ratios": list(self.ratios), "within": self.within}


@dataclass
class Figure:
    """A finished figure.

    number, title : of the paper; columns, rows : the table, one value of a row for each column
    claims : the paper's beside ours; notes : what one must know to read it, experiments
    """

    number: int
    title: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    claims: list[Claim] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def records(self) -> list[dict[str, Any]]:
        """The rows as mappings."""
        return [dict(zip(self.columns, row)) for row in self.rows]

    def select(self, **values: Any) -> list[dict[str, Any]]:
        """Records that have these values."""
        return [record for record in self.records() if all(record[name] == value for name, value in values.items())]

    def as_json(self) -> dict[str, Any]:
        """The numbers, under the names of the command line's JSON."""
        return {"figure": self.number, "title": self.title, "rows": self.records(),
                "claims": [claim.as_json() for claim in self.claims], "notes": self.notes}
