"""What a random program is made from: a list of steps, and the numbers each makes its choices with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from step_lang.hwconfig import HardwareConfig
from step_lang.memory_config import MemoryConfig

__all__ = ["Choices", "Recipe", "Step", "Unfit", "hardware_of"]

_T = TypeVar("_T")
Step = tuple[str, tuple[int, ...]]


@dataclass(frozen=True)
class Recipe:
    """``sources`` and ``steps``: (name, choices) each, see `SOURCES` and `STEPS`; ``hardware``: choices of
    `hardware_of`."""

    sources: tuple[Step, ...]
    steps: tuple[Step, ...]
    hardware: tuple[int, ...] = ()


class Choices:
    """Choices by the numbers of a step, one after the other; 0, the simplest, when they are used up."""

    def __init__(self, numbers: Sequence[int]):
        self._numbers = iter(numbers)

    def number(self, most: int, least: int = 0) -> int:
        """``least`` .. ``most``."""
        return least + next(self._numbers, 0) % (most - least + 1)

    def one_of(self, options: Sequence[_T]) -> _T:
        return options[self.number(len(options) - 1)]

    def yes(self, one_in: int = 2) -> bool:
        """Rarely; no is the simpler answer."""
        return self.number(one_in - 1) == one_in - 1


class Unfit(Exception):
    """A step that is not for this program."""


_MEMORIES = (
    MemoryConfig(channels=2, burst_bytes=16, capacity_bytes=1 << 17),
    MemoryConfig(),
    MemoryConfig(channels=1, burst_bytes=8, capacity_bytes=1 << 17, interval=3, latency=30, startup=7),
    MemoryConfig(model="banked", channels=2, capacity_bytes=1 << 17, banks=4, queue=4),
)


def hardware_of(recipe: Recipe) -> HardwareConfig:
    """The configuration that a recipe's program runs on. Small memories make small netlists; links are deep enough for
    most forks that join again, but for a few programs."""
    choose = Choices(recipe.hardware)
    memory = choose.one_of(_MEMORIES)
    tile = 4 if choose.yes(4) else 2
    page = choose.one_of((8, 2, 1))
    return HardwareConfig(
        tile=tile, memory=memory, page_frames=page, scratchpad_frames=64,
        link_depth=choose.one_of((16, 16, 16, 3)),
        k_per_cycle=1 if choose.yes() else None,
        rows_per_cycle=tile if choose.yes() else None,
        references=choose.one_of((4, 4, 2, 8)),
        load_window=choose.one_of((64, 4)),
        accumulator_entries=8,
    )
