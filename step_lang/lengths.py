"""How long a stream may be that is interpreted."""

from __future__ import annotations

from .errors import ProgramError

__all__ = ["MOST_ELEMENTS", "check_length"]

MOST_ELEMENTS = 1 << 27
"""Elements of the longest stream. Operators need a handful of arrays of 8 bytes an element, a GiB each then."""


def check_length(count: int, what: str) -> None:
    """Raise `ProgramError` for more than `MOST_ELEMENTS`, before memory for them is asked for: a machine may promise
    it and not have it."""
    if count > MOST_ELEMENTS:
        raise ProgramError(f"{what}: {count} elements vs {MOST_ELEMENTS}, the most that the interpreter keeps",
                           fix="use smaller counts")
