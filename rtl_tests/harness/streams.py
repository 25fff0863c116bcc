"""Random and directed streams of beats: ragged, with bare stops, of single elements, empty, one after another.

All are well formed (SPEC section 1): every stop closes exactly one level-1 vector, which may be empty; the last beat
of a non-empty stream of rank N carries S_N; done follows.
"""

from collections.abc import Callable
from random import Random

from .beats import DONE, Beat, LinkLayout, bare

__all__ = ["corner_streams", "random_element", "random_stream", "restop"]


def random_element(rng: Random, layout: LinkLayout, max_rows: int | None = None) -> Beat:
    """An element of random bits with 1 to ``max_rows`` valid rows (default: as many as the field holds)."""
    top = max_rows if max_rows is not None else max(1, (1 << layout.rows) - 1)
    return Beat(rng.getrandbits(layout.data), rng.randint(1, top))


def random_stream(
    rng: Random,
    rank: int,
    element: Callable[[], Beat],
    max_len: int = 4,
    *,
    p_empty: float = 0.2,
    p_single: float = 0.2,
    outer: int | None = None,
) -> list[Beat]:
    """One done-terminated stream of rank ``rank`` whose dimensions are ragged, each up to ``max_len``.

    ``element()`` makes an element's beat. Dimension 0 is 0 (a bare stop) with probability ``p_empty`` and 1 with
    ``p_single``; dimensions between are 1 with ``p_single``, never 0; the outermost is 0 (an empty stream) with
    ``p_empty`` / 2, or ``outer`` when given.
    """

    def length(innermost: bool) -> int:
        draw = rng.random()
        if innermost and draw < p_empty:
            return 0
        if draw > 1 - p_single:
            return 1
        return rng.randint(1, max_len)

    def tensor(level: int) -> list[Beat]:
        """A tensor of ``level`` + 1 dimensions, its last beat not closed yet at ``level``."""
        if level == 0:
            return [element() for _ in range(length(True))]
        made: list[Beat] = []
        for _ in range(length(False)):
            made += close(tensor(level - 1), level)
        return made

    def close(inner: list[Beat], level: int) -> list[Beat]:
        if not inner:  # an empty level-1 vector
            return [bare(level)]
        return [*inner[:-1], inner[-1]._replace(stop=level)]

    if outer is None:
        outer = 0 if rng.random() < p_empty / 2 else rng.randint(1, max_len)
    if rank == 0:
        return [element() for _ in range(outer)] + [DONE]
    made: list[Beat] = []
    for _ in range(outer):
        made += close(tensor(rank - 1), rank)
    return [*made, DONE]


def corner_streams(rank: int, element: Callable[[], Beat]) -> dict[str, list[Beat]]:
    """Named streams that units get wrong: empty, of one element, with bare stops at either end, back to back."""
    found: dict[str, list[Beat]] = {"empty stream": [DONE]}
    one = [element()._replace(stop=rank), DONE]
    found["single element"] = one
    found["many elements"] = [*(element() for _ in range(9)), element()._replace(stop=rank), DONE]
    if rank >= 1:
        found["bare stop only"] = [bare(rank), DONE]
        found["starts with a bare stop"] = [bare(1), element()._replace(stop=rank), DONE]
        found["ends with a bare stop"] = [element(), element()._replace(stop=1), bare(rank), DONE]
        found["bare stops between"] = [
            element()._replace(stop=1),
            bare(1),
            bare(1),
            element()._replace(stop=rank),
            DONE,
        ]
        found["every level"] = [
            *(beat for level in range(1, rank + 1) for beat in (element(), element()._replace(stop=level))),
            *(beat for level in range(rank, 0, -1) for beat in (bare(level), element()._replace(stop=level))),
            element()._replace(stop=rank),
            DONE,
        ]
    found["back to back"] = [DONE, *one, *found["many elements"], DONE, *one]
    return found


def restop(stream: list[Beat], change: Callable[[int], int]) -> list[Beat]:
    """The same beats with every stop passed through ``change`` (done excepted)."""
    return [beat if beat.done else beat._replace(stop=change(beat.stop)) for beat in stream]
