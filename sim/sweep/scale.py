"""A parameter as a search sees it: places along ordered values, or names of values without order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .points import Grid

if TYPE_CHECKING:
    import optuna

__all__ = ["Scale", "scales_of"]


class Scale:
    """A parameter's values.

    ordered : whether they are numbers
    order : the choices (positions in the axis's values), ascending by value where they are
    """

    def __init__(self, name: str, values: Sequence[Any]):
        self.name = name
        self.ordered = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
        self.order = list(range(len(values)))
        if self.ordered:
            self.order.sort(key=lambda choice: values[choice])

    def suggest(self, trial: optuna.Trial) -> int:
        """The trial's choice."""
        if self.ordered:
            return self.order[trial.suggest_int(self.name, 0, len(self.order) - 1)]
        return trial.suggest_categorical(self.name, self.order)

    def asked(self, choice: int) -> int:
        """What a trial is given in order to suggest ``choice``."""
        return self.order.index(choice) if self.ordered else choice


def scales_of(grid: Grid) -> list[Scale]:
    """Of the grid's parameter sets, then of each axis. The sets have no order."""
    return [Scale("set", ["set"] * len(grid.sets)), *(Scale(axis.name, axis.values) for axis in grid.axes)]
