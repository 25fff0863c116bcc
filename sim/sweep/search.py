"""Looks for the Pareto front of a grid with far fewer points than it has.

Points are chosen in batches. In a batch, Optuna's sampler (a tree-structured Parzen estimator for several objectives)
proposes some, and the others are neighbours of the front found so far: the sampler tells where in the grid the front
is, and neighbours tell its points from those close by.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .pareto import Objective, front
from .points import Grid

if TYPE_CHECKING:
    import optuna

__all__ = ["BATCH", "search"]

BATCH = 8
"""Points that are chosen before any of them is known. It does not depend on how many workers there are, so that the
same search chooses the same points everywhere."""

_SAMPLED = 4
"""The sampler proposes each fourth point, as long as the front has neighbours: on the grids tried, of the shares of a
half, a quarter and none, this one found whole fronts with the fewest points."""

_REPEATS = 5
"""Proposals in a row that are known already, before one is drawn at random."""

Row = Mapping[str, Any]


def search(grid: Grid, objectives: Sequence[Objective], budget: int, seed: int,
           evaluate: Callable[[Sequence[int]], Sequence[Row]]) -> dict[int, Row]:
    """Rows of at most ``budget`` different points by their position in the grid, as they were chosen.

    ``evaluate`` gives the rows at the positions of a batch; a row has the objectives' numbers, or an ``error`` that is
    not None. The same arguments and rows give the same choices.
    """
    chooser = _Chooser(grid, objectives, seed)
    budget = min(budget, len(grid))
    while len(chooser.rows) < budget:
        trials = chooser.batch(min(BATCH, budget - len(chooser.rows)))
        for (position, trial), row in zip(trials.items(), evaluate(list(trials)), strict=True):
            chooser.tell(position, trial, row)
    return chooser.rows


class _Chooser:
    """Chooses points and is told their rows."""

    def __init__(self, grid: Grid, objectives: Sequence[Objective], seed: int):
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.grid, self.objectives, self.rows = grid, objectives, dict[int, Row]()
        self.generator = random.Random(seed)
        self.scales = [_Scale("set", range(len(grid.sets)), ordered=False),
                       *(_Scale(axis.name, axis.values, _is_ordered(axis.values)) for axis in grid.axes)]
        self.study = optuna.create_study(
            directions=["minimize"] * len(objectives),
            sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=2 * BATCH))

    def tell(self, position: int, trial: optuna.Trial, row: Row) -> None:
        """A point's row."""
        self.rows[position] = row
        if row["error"] is None:
            self.study.tell(trial, [objective.cost(row) for objective in self.objectives])
        else:
            self.study.tell(trial, state=_failed())

    def batch(self, size: int) -> dict[int, optuna.Trial]:
        """Trials of ``size`` points without row, by position."""
        near = self._near_front()
        chosen: dict[int, optuna.Trial] = {}
        while len(chosen) < size:
            unknown = [choices for choices in near if self.grid.index(choices) not in chosen]
            if len(chosen) % _SAMPLED and unknown:
                position, trial = self._given(self.generator.choice(unknown))
            else:
                position, trial = self._sampled(chosen)
            chosen[position] = trial
        return chosen

    def _near_front(self) -> list[tuple[int, ...]]:
        """Points without row that differ from one of the front by a step in one parameter."""
        positions = list(self.rows)
        found: dict[tuple[int, ...], None] = {}
        for i in front([self.rows[position] for position in positions], self.objectives):
            at = self.grid.choices(positions[i])
            for axis, scale in enumerate(self.scales):
                for choice in scale.beside(at[axis]):
                    found[(*at[:axis], choice, *at[axis + 1:])] = None
        return [choices for choices in found if self.grid.index(choices) not in self.rows]

    def _sampled(self, chosen: Mapping[int, optuna.Trial]) -> tuple[int, optuna.Trial]:
        """A point that the sampler proposes."""
        for _ in range(_REPEATS):
            trial = self.study.ask()
            position = self.grid.index([scale.suggest(trial) for scale in self.scales])
            if position not in self.rows and position not in chosen:
                return position, trial
            self.study.tell(trial, state=_failed())
        left = [p for p in range(len(self.grid)) if p not in self.rows and p not in chosen]
        return self._given(self.grid.choices(self.generator.choice(left)))

    def _given(self, choices: Sequence[int]) -> tuple[int, optuna.Trial]:
        """A trial of these choices."""
        self.study.enqueue_trial({scale.name: scale.asked(c) for scale, c in zip(self.scales, choices, strict=True)})
        trial = self.study.ask()
        return self.grid.index([scale.suggest(trial) for scale in self.scales]), trial


class _Scale:
    """A parameter as the sampler sees it: places along ordered values, or names of values without order."""

    def __init__(self, name: str, values: Sequence[Any], ordered: bool):
        self.name, self.ordered = name, ordered
        self.order = sorted(range(len(values)), key=lambda choice: values[choice]) if ordered else list(
            range(len(values)))

    def suggest(self, trial: optuna.Trial) -> int:
        """The trial's choice."""
        if self.ordered:
            return self.order[trial.suggest_int(self.name, 0, len(self.order) - 1)]
        return trial.suggest_categorical(self.name, self.order)

    def asked(self, choice: int) -> int:
        """What `suggest` must be given to suggest ``choice``."""
        return self.order.index(choice) if self.ordered else choice

    def beside(self, choice: int) -> list[int]:
        """Choices a step away."""
        if not self.ordered:
            return [other for other in self.order if other != choice]
        place = self.order.index(choice)
        return [self.order[near] for near in (place - 1, place + 1) if 0 <= near < len(self.order)]


def _is_ordered(values: Sequence[Any]) -> bool:
    return all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)


def _failed() -> optuna.trial.TrialState:
    import optuna

    return optuna.trial.TrialState.FAIL
