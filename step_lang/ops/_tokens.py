"""Token work that several operators share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import MisalignedStreams
from ..tokens import TokenStream

__all__ = ["passes", "require_same_stops", "show_beat"]


def passes(tokens: TokenStream, stops: np.ndarray, levels: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One pass of ``stops`` (its last is ``levels``) for each element of ``tokens``, a bare stop raised by
    ``levels``. Returns (stop, empty, position in the pass of each element)."""
    length = len(stops)
    counts = np.where(tokens.empty, 1, length)
    owner = np.repeat(np.arange(len(tokens)), counts)
    position = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    empty = tokens.empty[owner]
    last = empty | (position == length - 1)
    stop = np.where(last, tokens.stop[owner].astype(np.int64) + levels, stops[position])
    return stop, empty, position[~empty]


def show_beat(tokens: TokenStream, i: int) -> str:
    """A beat in words, for messages."""
    if i >= len(tokens):
        return "done"
    return ("bare " if tokens.empty[i] else "element with ") + f"stop {int(tokens.stop[i])}"


def require_same_stops(inputs: Sequence[TokenStream], names: Sequence[str]) -> None:
    """Raise `MisalignedStreams` at the first beat where streams part."""
    first = inputs[0]
    for tokens, name in zip(inputs[1:], names[1:]):
        if first.same_stops(tokens):
            continue
        length = min(len(first), len(tokens))
        differ = np.flatnonzero((first.stop[:length] != tokens.stop[:length])
                                | (first.empty[:length] != tokens.empty[:length]))
        i = int(differ[0]) if len(differ) else length
        raise MisalignedStreams(f"beat {i}: {show_beat(first, i)} on '{names[0]}' vs {show_beat(tokens, i)} on "
                                f"'{name}'", fix="make both streams' stops agree")
