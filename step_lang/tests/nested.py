"""Random ragged tensors as nested lists: the independent reference for token work."""

from hypothesis import strategies as st

__all__ = ["flat", "map_level", "nested_streams", "tensors"]


def tensors(rank: int, longest: int = 4):
    """Lists nested ``rank + 1`` deep of small ints; only the innermost and the outermost may be empty."""
    strategy: st.SearchStrategy = st.integers(-9, 9)
    for level in range(rank + 1):
        strategy = st.lists(strategy, min_size=0 if level in (0, rank) else 1, max_size=longest)
    return strategy


@st.composite
def nested_streams(draw, least: int = 0, most: int = 3):
    """(rank, nested lists)."""
    rank = draw(st.integers(least, most))
    return rank, draw(tensors(rank))


def flat(nested, depth: int) -> list:
    """``nested`` with ``depth`` levels of nesting removed from the outside."""
    for _ in range(depth):
        nested = [item for inner in nested for item in inner]
    return nested


def map_level(f, nested, depth: int):
    """``f`` of every list that lies ``depth`` levels below the outermost."""
    return f(nested) if depth == 0 else [map_level(f, inner, depth - 1) for inner in nested]
