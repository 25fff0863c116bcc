"""The points of a sweep: every combination of the values that parameters are given."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from step_lang.errors import BadParameter

__all__ = ["MOST_POINTS", "Axis", "Grid", "Point"]

MOST_POINTS = 100_000
"""More are refused: their rows are kept in memory."""


@dataclass(frozen=True)
class Axis:
    """One parameter and the values it takes: of the hardware (``section.key``), or else of the program's builder."""

    name: str
    values: tuple[Any, ...]
    hardware: bool = False


@dataclass(frozen=True)
class Point:
    """One combination: parameters of the program by name, of the hardware by ``section.key``."""

    parameters: Mapping[str, Any] = field(default_factory=dict)
    hardware: Mapping[str, Any] = field(default_factory=dict)

    @property
    def columns(self) -> dict[str, Any]:
        """All parameters by name, the program's first; no name is both's, since only the hardware's have a dot."""
        return {**self.parameters, **self.hardware}

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.columns.items()) or "default parameters"


@dataclass(frozen=True)
class Grid:
    """All combinations of the axes' values, the last axis fastest.

    sets : parameter sets of the program, such as a program file's ``SWEEPS``; each is combined with all axes, an axis
        that it names excepted, which is an error. They are the slowest axis.

    Raises `BadParameter` for a parameter or a value given twice, and for more than `MOST_POINTS` points.
    """

    axes: tuple[Axis, ...]
    sets: tuple[Mapping[str, Any], ...] = ({},)

    def __post_init__(self) -> None:
        names = [axis.name for axis in self.axes]
        for axis in self.axes:
            if names.count(axis.name) > 1:
                raise BadParameter(f"parameter '{axis.name}' of the sweep: given twice vs once",
                                   fix=f"give all values at once: {axis.name}=v1,v2")
            if not axis.values:
                raise BadParameter(f"parameter '{axis.name}' of the sweep: no value vs at least one")
            for i, value in enumerate(axis.values):
                if any(type(value) is type(other) and value == other for other in axis.values[:i]):
                    raise BadParameter(f"parameter '{axis.name}' of the sweep: value {value!r} twice vs once")
            if any(axis.name in chosen for chosen in self.sets):
                raise BadParameter(f"parameter '{axis.name}' of the sweep: given vs in the named parameter sets",
                                   fix="leave one of them out")
        if len(self) > MOST_POINTS:
            raise BadParameter(f"points of the sweep: {len(self)} vs at most {MOST_POINTS}", fix="give fewer values")

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many choices there are: of sets, then of each axis."""
        return (len(self.sets), *(len(axis.values) for axis in self.axes))

    def __len__(self) -> int:
        return math.prod(self.sizes)

    def point(self, choices: Sequence[int]) -> Point:
        """The point of one choice each, as in ``sizes``."""
        parameters: dict[str, Any] = dict(self.sets[choices[0]])
        hardware: dict[str, Any] = {}
        for axis, choice in zip(self.axes, choices[1:], strict=True):
            (hardware if axis.hardware else parameters)[axis.name] = axis.values[choice]
        return Point(parameters, hardware)

    def index(self, choices: Sequence[int]) -> int:
        """Position of a point in ``points``."""
        position = 0
        for size, choice in zip(self.sizes, choices, strict=True):
            position = position * size + choice
        return position

    def choices(self, index: int) -> tuple[int, ...]:
        """The choices of the point at ``index`` of ``points``."""
        found = []
        for size in reversed(self.sizes):
            index, choice = divmod(index, size)
            found.append(choice)
        return tuple(reversed(found))

    def points(self) -> list[Point]:
        """All of them, in order."""
        return [self.point(choices) for choices in itertools.product(*map(range, self.sizes))]
