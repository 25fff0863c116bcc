"""Functional coverage: named bins that a bench declares, counts, and must hit.

    coverage = Coverage("flatten", must_hit=["bare stop swallowed", "stop above hi"])
    coverage.hit("stop above hi")
    coverage.check()        # AssertionError names every bin that was never hit

Counts of several runs merge in a JSON file (``save``), under a file lock, so that parallel tests may share it.
"""

import fcntl
import json
import os
from collections.abc import Iterable
from pathlib import Path

from .beats import Beat

__all__ = ["STREAM_BINS", "Coverage", "stream_bins"]

#: What `stream_bins` can find in a stream of rank 1 or more.
STREAM_BINS = (
    "empty stream",
    "single element stream",
    "bare stop",
    "starts with bare stop",
    "bare stop after bare stop",
    "fused stop",
    "highest stop",
    "back to back streams",
)


class Coverage:
    """Counts of named bins. `hit` refuses a name that is not among ``must_hit``, so that a typo cannot hide a gap."""

    def __init__(self, name: str, must_hit: Iterable[str]):
        self.name = name
        self.counts: dict[str, int] = {bin_: 0 for bin_ in must_hit}
        if not self.counts:
            raise ValueError(f"coverage {name!r} declares no bins")

    def hit(self, bin_: str, times: int = 1) -> None:
        """Count ``bin_``."""
        if bin_ not in self.counts:
            raise KeyError(f"coverage {self.name!r} has no bin {bin_!r}; it has {', '.join(self.counts)}")
        self.counts[bin_] += times

    def hit_if_declared(self, bins: Iterable[str]) -> None:
        """Count those of ``bins`` that are declared here."""
        for bin_ in bins:
            if bin_ in self.counts:
                self.counts[bin_] += 1

    def missing(self) -> list[str]:
        """Bins never hit."""
        return [bin_ for bin_, count in self.counts.items() if count == 0]

    def check(self) -> None:
        """AssertionError if any bin was not hit."""
        missing = self.missing()
        assert not missing, f"coverage {self.name!r}: never hit: {', '.join(missing)} (of {len(self.counts)} bins)"

    def merge(self, other: "Coverage") -> None:
        """Add the counts of the same bins from another run."""
        if other.name != self.name or set(other.counts) != set(self.counts):
            raise ValueError(f"coverage {self.name!r} and {other.name!r} do not have the same bins")
        for bin_, count in other.counts.items():
            self.counts[bin_] += count

    def save(self, path: str | os.PathLike) -> None:
        """Add these counts to the JSON file at ``path``: ``{name: {bin: count}}``, keys sorted; replaced whole."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(f"{target}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            total = json.loads(target.read_text()) if target.exists() else {}
            mine = total.setdefault(self.name, {})
            for bin_, count in self.counts.items():
                mine[bin_] = mine.get(bin_, 0) + count
            fresh = target.with_name(f".{target.name}.new")
            fresh.write_text(json.dumps(total, indent=1, sort_keys=True) + "\n")
            fresh.replace(target)


def stream_bins(stream: Iterable[Beat]) -> set[str]:
    """Which of `STREAM_BINS` a sequence of beats (one or more streams) shows."""
    found: set[str] = set()
    before: Beat | None = None
    elements = streams = 0
    beats = list(stream)
    highest = max((beat.stop for beat in beats), default=0)
    first = True
    for beat in beats:
        if beat.done:
            streams += 1
            if first:
                found.add("empty stream")
            if elements == 1:
                found.add("single element stream")
            elements, first, before = 0, True, None
            continue
        if beat.empty:
            found.add("bare stop")
            if first:
                found.add("starts with bare stop")
            if before is not None and before.empty:
                found.add("bare stop after bare stop")
        else:
            elements += 1
            if beat.stop:
                found.add("fused stop")
        if beat.stop and beat.stop == highest:
            found.add("highest stop")
        first, before = False, beat
    if streams > 1:
        found.add("back to back streams")
    return found
