"""What the known points of a grid tell about the others: a fit of the costs' logarithms.

Cycles and bytes are roughly products of what each parameter does to them, so their logarithms are roughly sums: a term
for each value of each parameter and one for each pair of parameters, fitted by least squares with a small penalty.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .points import Grid
from .scale import Scale

__all__ = ["Surrogate", "logarithms"]

_PENALTY = 0.01
_FEW = 4
"""Values without order that a parameter may have to get terms for pairs."""


class Surrogate:
    """Fits over all points of ``grid``."""

    def __init__(self, grid: Grid, scales: Sequence[Scale]):
        choices = np.stack(np.unravel_index(np.arange(len(grid)), grid.sizes), axis=1)
        terms, pairs = [np.ones((len(grid), 1))], []
        for axis, scale in enumerate(scales):
            n = len(scale.order)
            if n == 1:
                continue
            each = np.eye(n)[choices[:, axis]]
            terms.append(each)
            if scale.ordered:
                place = np.argsort(scale.order)[choices[:, axis]]
                pairs.append((place / (n - 1) - 0.5)[:, None])
            elif n <= _FEW:
                pairs.append(each - 1 / n)
        for i, one in enumerate(pairs):
            terms += [(one[:, :, None] * other[:, None, :]).reshape(len(grid), -1) for other in pairs[:i]]
        self.terms = np.concatenate(terms, axis=1)

    def fit(self, positions: Sequence[int], values: np.ndarray) -> np.ndarray:
        """Values of all points, from ``values [len(positions), k]`` of some: ``[len(grid), k]``."""
        known, mean = self.terms[list(positions)], values.mean(axis=0)
        square = known.T @ known + _PENALTY * np.eye(known.shape[1])
        return self.terms @ np.linalg.solve(square, known.T @ (values - mean)) + mean

    def promising(self, positions: Sequence[int], costs: np.ndarray, refused: Sequence[int], taken: Sequence[int],
                  count: int) -> list[int]:
        """``count`` positions not in ``positions``, ``refused`` or ``taken`` that should beat the front most.

        costs : ``[len(positions), objectives]``, to be small, as of `logarithms`

        How far a point beats a front is its distance, in the objective in which it is largest, to the nearest point of
        it, in units of the costs' spread. Each position that is chosen counts as one of the front with its fitted
        costs, so that the next one is elsewhere. Points that the fit takes for refused come last.
        """
        spread = costs.std(axis=0) + 1e-9
        fitted = self.fit(positions, costs) / spread
        known = costs / spread
        ahead = (known[:, None] - fitted[None]).max(axis=2).min(axis=0)
        if len(refused):
            told = np.zeros((len(positions) + len(refused), 1))
            told[len(positions):] = 1
            likely = self.fit([*positions, *refused], told)[:, 0] > 0.5
            ahead[likely] -= 1e6
        ahead[[*positions, *refused, *taken]] = -np.inf
        chosen: list[int] = []
        for _ in range(min(count, int(np.isfinite(ahead).sum()))):
            best = int(ahead.argmax())
            chosen.append(best)
            ahead = np.minimum(ahead, (fitted[best] - fitted).max(axis=1))
            ahead[[*positions, *refused, *taken, *chosen]] = -np.inf
        return chosen


def logarithms(costs: np.ndarray) -> np.ndarray:
    """Logarithms of each column that is positive, negative ones of one that is negative; others as they are."""
    made = np.array(costs, dtype=float)
    for column in made.T:
        if (column > 0).all():
            column[:] = np.log(column)
        elif (column < 0).all():
            column[:] = -np.log(-column)
    return made
