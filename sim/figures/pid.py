"""Pareto frontier and Pareto improvement distance of points (cycles, memory): less of either is better."""

from __future__ import annotations

from collections.abc import Sequence

from step_lang.errors import BadParameter

__all__ = ["improvement_distance", "pareto_front"]

Point = tuple[float, float]


def pareto_front(points: Sequence[Point]) -> list[Point]:
    """The points that no other one is at least as good as in both and better in one, by rising first coordinate."""
    front: list[Point] = []
    for point in sorted(set(points)):
        if not front or point[1] < front[-1][1]:
            front.append(point)
    return front


def improvement_distance(point: Point, others: Sequence[Point]) -> float:
    """How far ``point`` lies beyond the frontier of ``others``: the least, over the frontier, of the larger ratio of
    the two coordinates. Above 1: none of them is as good in both; below 1: the point is behind the frontier.

    Raises `BadParameter` where a coordinate is not above 0, or there are no others.
    """
    if not others or min(min(p) for p in [point, *others]) <= 0:
        raise BadParameter(f"Pareto improvement distance of {point} to {len(others)} points: "
                           "vs at least one, all coordinates above 0")
    return min(max(q[0] / point[0], q[1] / point[1]) for q in pareto_front(others))
