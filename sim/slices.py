"""Slices of work: who worked from when to when; and fewer of them where there are too many."""

import numpy as np

__all__ = ["bounded", "merged"]


def merged(slices: np.ndarray, gap: int) -> np.ndarray:
    """``slices`` [n, 4] of (track, begin, end, work), by track and begin; those of a track that lie at most ``gap``
    cycles apart are one, whose work is the sum (gap -1: only those that overlap)."""
    if not len(slices):
        return slices.copy()
    rows = slices[np.lexsort((slices[:, 1], slices[:, 0]))]
    # The furthest end so far in the track: ends are shifted apart by track, so that one pass serves all.
    span = int(rows[:, 2].max()) + 1
    reach = np.maximum.accumulate(rows[:, 2] + rows[:, 0] * span) - rows[:, 0] * span
    begins = np.ones(len(rows), dtype=bool)
    begins[1:] = (rows[1:, 0] != rows[:-1, 0]) | (rows[1:, 1] > reach[:-1] + gap)
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(rows)) - 1
    return np.stack([rows[first, 0], rows[first, 1], reach[last], np.add.reduceat(rows[:, 3], first)], axis=1)


def bounded(slices: np.ndarray, most: int, gap: int = -1) -> tuple[np.ndarray, int]:
    """At most ``most`` slices and the gap over which they were merged to get there, at least ``gap``. Needs as many as
    there are tracks."""
    kept = merged(slices, gap)
    while len(kept) > max(most, len(np.unique(slices[:, 0]))):
        gap = 2 * gap + 1 if gap >= 0 else 0
        kept = merged(kept, gap)
    return kept, gap
