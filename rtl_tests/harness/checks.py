"""Rules of the link protocol, and comparison of beats: plain functions of what was seen, no simulator needed."""

from collections import Counter
from collections.abc import Callable, Sequence

from .beats import Beat, LinkLayout

__all__ = ["LinkChecks", "compare_beats"]


class LinkChecks:
    """Checks one link cycle by cycle.

    Rules: an offer stays, unchanged, until it is taken; no beat of a further stream before that stream may begin;
    stop within ``max_rank`` (when given); an empty beat carries data 0 and rows 0, and a stop unless it is done;
    done is empty and has stop 0; an element has at least one row, unless tiles of several rows travel on the link: one
    of dynamic rows may have none.
    """

    def __init__(self, name: str, layout: LinkLayout, max_rank: int | None = None):
        self.name = name
        self.layout = layout
        self.max_rank = max_rank
        self._held: int | None = None  # payload of an offer that was not taken
        self._held_since = 0
        self._dones = 0
        self._after_done = False
        self._last_checked: int | None = None

    def cycle(self, cycle: int, valid: bool, ready: bool, word: int, may_begin: Callable[[], int]) -> str | None:
        """None, or what is wrong in this cycle."""
        if not valid:
            if self._held is not None:
                return (
                    f"{self.name}: valid dropped in cycle {cycle}, "
                    f"the beat offered since cycle {self._held_since} was not taken"
                )
            return None
        if self._held is not None and word != self._held:
            was, now = self.layout.unpack(self._held), self.layout.unpack(word)
            fields = ", ".join(
                f"{name} {a:#x} -> {b:#x}" for name, a, b in zip(was._fields, was, now, strict=True) if a != b
            )
            return (
                f"{self.name}: payload changed in cycle {cycle} while valid and not ready "
                f"(offered since cycle {self._held_since}): {fields}"
            )
        if self._held is None:
            self._held_since = cycle
            beat = self.layout.unpack(word)
            wrong = self._form(beat)
            if wrong:
                return f"{self.name}: malformed beat in cycle {cycle}: {wrong} ({beat!r})"
            if self._after_done and self._dones >= may_begin():
                return f"{self.name}: beat {beat} in cycle {cycle} after done, before the next stream began"
        if ready:
            self._held = None
            done = self.layout.unpack(word).done
            self._dones += done
            self._after_done = bool(done)
        else:
            self._held = word
        return None

    def _form(self, beat: Beat) -> str | None:
        if beat.done and not beat.empty:
            return "done without empty"
        if beat.done and beat.stop:
            return "done with a stop"
        if beat.empty and beat.data:
            return "empty with data"
        if beat.empty and beat.rows:
            return "empty with rows"
        if beat.empty and not beat.done and not beat.stop:
            return "empty without stop and without done"
        if not beat.empty and not beat.rows and self.layout.rows == 1:
            return "an element of no rows"
        if self.max_rank is not None and beat.stop > self.max_rank:
            return f"stop {beat.stop} above the stream's rank {self.max_rank}"
        return None


def compare_beats(
    name: str,
    expected: Sequence[Beat],
    got: Sequence[Beat],
    stamps: Sequence[int] | None = None,
    *,
    unordered: bool = False,
) -> str | None:
    """None if equal, else a message with the first difference in context.

    ``unordered`` compares as multisets (for links whose order is timing).
    """
    expected, got = list(expected), list(got)
    if unordered:
        missing, extra = Counter(expected) - Counter(got), Counter(got) - Counter(expected)
        if not missing and not extra:
            return None
        return f"{name}: as sets of beats, missing {_count(missing)}, not expected {_count(extra)}"
    if expected == got:
        return None
    at = next(
        (i for i, pair in enumerate(zip(expected, got, strict=False)) if pair[0] != pair[1]),
        min(len(expected), len(got)),
    )
    if at == len(got):
        first = f"{name}: beat {at} is missing: got {len(got)} of {len(expected)}"
    elif at == len(expected):
        first = f"{name}: beat {at} is one too many: got {len(got)}, expected {len(expected)}"
    else:
        fields = [f for f, a, b in zip(Beat._fields, expected[at], got[at], strict=True) if a != b]
        first = f"{name}: beat {at} differs in {', '.join(fields)}"
    lines = [first]
    start = max(0, at - 3)
    for i in range(start, min(max(len(expected), len(got)), at + 4)):
        want = str(expected[i]) if i < len(expected) else "-"
        have = str(got[i]) if i < len(got) else "-"
        when = f"  cycle {stamps[i]}" if stamps is not None and i < len(stamps) else ""
        lines.append(f"  {'>' if i == at else ' '} {i:4d}  expected {want:24s} got {have:24s}{when}")
    return "\n".join(lines)


def _count(beats: Counter) -> str:
    shown = [f"{count} x {beat}" if count > 1 else str(beat) for beat, count in sorted(beats.items())[:6]]
    return ", ".join(shown) + (", ..." if len(beats) > 6 else "") if shown else "nothing"
