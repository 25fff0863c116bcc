"""Looks for the Pareto front of a grid with far fewer points than it has.

Points are chosen in batches. A quarter of a batch is what Optuna's sampler proposes (a tree-structured Parzen estimator
for several objectives), the rest is what a fit of the known points takes for the front (`sim.sweep.surrogate`): the fit
finds fronts fast, the sampler looks where the fit is wrong.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .pareto import Objective
from .points import Grid
from .scale import scales_of
from .surrogate import Surrogate, logarithms

if TYPE_CHECKING:
    import optuna

__all__ = ["BATCH", "Row", "search"]

BATCH = 8
"""Points that are chosen before any of them is known. It does not depend on how many workers there are, so that the
same search chooses the same points everywhere."""

_SAMPLED = 2
"""Points of a batch that the sampler proposes."""

_LEAST = 4
"""Points with numbers that a fit needs."""

_REPEATS = 5
"""Proposals in a row that are known already, before a point is drawn at random."""

Row: TypeAlias = Mapping[str, Any]


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
        self.scales = scales_of(grid)
        self.surrogate = Surrogate(grid, self.scales)
        self.failed = optuna.trial.TrialState.FAIL
        self.study = optuna.create_study(
            directions=["minimize"] * len(objectives),
            sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=2 * BATCH))

    def tell(self, position: int, trial: optuna.Trial, row: Row) -> None:
        """A point's row."""
        self.rows[position] = row
        if row["error"] is None:
            self.study.tell(trial, [objective.cost(row) for objective in self.objectives])
        else:
            self.study.tell(trial, state=self.failed)

    def batch(self, size: int) -> dict[int, optuna.Trial]:
        """Trials of ``size`` points without row, by position."""
        chosen: dict[int, optuna.Trial] = {}
        good = [position for position, row in self.rows.items() if row["error"] is None]
        while len(chosen) < (min(_SAMPLED, size) if len(good) >= _LEAST else size):
            position, trial = self._sampled(chosen)
            chosen[position] = trial
        if len(chosen) < size:
            costs = logarithms(np.array([[objective.cost(self.rows[position]) for objective in self.objectives]
                                         for position in good]))
            refused = [position for position, row in self.rows.items() if row["error"] is not None]
            for position in self.surrogate.promising(good, costs, refused, list(chosen), size - len(chosen)):
                chosen[position] = self._given(position)
        return chosen

    def _sampled(self, chosen: Mapping[int, optuna.Trial]) -> tuple[int, optuna.Trial]:
        """A point that the sampler proposes."""
        for _ in range(_REPEATS):
            trial = self.study.ask()
            position = self.grid.index([scale.suggest(trial) for scale in self.scales])
            if position not in self.rows and position not in chosen:
                return position, trial
            self.study.tell(trial, state=self.failed)
        left = [p for p in range(len(self.grid)) if p not in self.rows and p not in chosen]
        position = self.generator.choice(left)
        return position, self._given(position)

    def _given(self, position: int) -> optuna.Trial:
        """A trial of the point at ``position``."""
        choices = self.grid.choices(position)
        self.study.enqueue_trial({scale.name: scale.asked(c) for scale, c in zip(self.scales, choices, strict=True)})
        trial = self.study.ask()
        for scale in self.scales:
            scale.suggest(trial)
        return trial
