"""Which points no other point beats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from step_lang.errors import BadParameter

from .evaluate import NUMBERS, numbers_of

__all__ = ["Objective", "front", "objectives_of"]

_LARGER_IS_BETTER = ("compute_utilisation",)


@dataclass(frozen=True)
class Objective:
    """A number of the points, and whether less of it is better or more."""

    name: str
    maximise: bool = False

    def cost(self, row: Mapping[str, Any]) -> float:
        """What is to be small."""
        return -row[self.name] if self.maximise else row[self.name]


def objectives_of(text: str, fidelity: str = "beat") -> tuple[Objective, ...]:
    """``"cycles,onchip_bytes"`` as objectives; ``max:`` or ``min:`` before a name overrides what is better of it.

    Raises `BadParameter` for a name that is no number of a point at this fidelity, for one given twice, and for none.
    """
    found: list[Objective] = []
    for part in filter(None, map(str.strip, text.split(","))):
        direction, _, name = part.rpartition(":")
        allowed = [known for known in numbers_of(fidelity) if NUMBERS[known] is not bool]
        if name not in allowed or direction not in ("", "min", "max"):
            raise BadParameter(f"objective: {part!r} vs one of {', '.join(allowed)}",
                               fix="give names separated by commas; max:NAME where more is better")
        if name in [objective.name for objective in found]:
            raise BadParameter(f"objective '{name}': given twice vs once")
        found.append(Objective(name, direction == "max" or (not direction and name in _LARGER_IS_BETTER)))
    if not found:
        raise BadParameter(f"objectives: {text!r} vs at least one name", fix="such as cycles,onchip_bytes")
    return tuple(found)


def front(rows: Sequence[Mapping[str, Any]], objectives: Sequence[Objective]) -> list[int]:
    """Positions of the rows that no other row beats: none is as good in all objectives and better in one. Rows with an
    ``error`` take no part. In order; equal rows are on the front together."""
    taking = [i for i, row in enumerate(rows) if row.get("error") is None]
    if not taking:
        return []
    costs = [tuple(float(objective.cost(rows[i])) for objective in objectives) for i in taking]
    best = set()
    left = np.unique(costs, axis=0)  # in order of the first objective, then of the second, ...
    while len(left):
        first = left[0]  # nothing that comes later beats it
        best.add(tuple(first.tolist()))
        left = left[np.any(left < first, axis=1)]
    return [i for i, cost in zip(taking, costs) if cost in best]
