"""How a link's control value says a selector of up to 128 bits.

A selector of at most ``BITS`` bits is its value. A wider one lies on the heap, ``BITS`` bits a word, lowest first, and
the value is the offset of its first word; units that make or feed selectors put all they can make there when they are
packed.
"""

from collections.abc import Iterable
from typing import Protocol

import numpy as np

from .compiled import compiled

__all__ = ["BITS", "pack_selectors", "selected", "selects_beyond", "selects_nothing"]

BITS = 64
"""Bits of a word."""


class Reserving(Protocol):
    """What gives out words of a run's heap."""

    def reserve(self, n: int, values: np.ndarray | None = None) -> int:
        """Offset of ``n`` words, preset to ``values``."""


def pack_selectors(build: Reserving, selectors: Iterable[int], width: int) -> list[int]:
    """Control values that say ``selectors`` (their bits as ints) on a link of ``width`` bits."""
    found = list(selectors)
    if width <= BITS:
        return [_word(bits) for bits in found]
    words = -(-width // BITS)
    table = [_word(bits >> BITS * i) for bits in found for i in range(words)]
    first = build.reserve(len(table), np.asarray(table, dtype=np.int64))
    return [first + words * i for i in range(len(found))]


def _word(bits: int) -> int:
    """The lowest ``BITS`` bits as an int64, whose sign is the highest of them."""
    return (bits & (1 << BITS) - 1) - (bits >> BITS - 1 & 1) * (1 << BITS)


@compiled
def selected(net, value, width, k):
    """Is bit ``k`` set in the selector that ``value`` says on a link of ``width`` bits?"""
    if width <= BITS:
        return (value >> k) & 1 == 1
    return (net.heap[value + k // BITS] >> (k % BITS)) & 1 == 1


@compiled
def selects_beyond(net, value, width, n):
    """Is any bit from ``n`` up set?"""
    for k in range(n, width):
        if selected(net, value, width, k):
            return True
    return False


@compiled
def selects_nothing(net, value, width, n):
    """Is no bit below ``n`` set?"""
    for k in range(n):
        if selected(net, value, width, k):
            return False
    return True
