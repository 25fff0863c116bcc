"""When a driver offers its next beat, and when a sink is ready.

A pattern is data (it travels to the simulator's process); `Pattern.gate` makes the function that is asked once a cycle.
The same pattern and seed give the same cycles on every simulator.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

__all__ = ["Pattern", "after_valid", "always", "bernoulli", "bursts", "never", "withhold"]


@dataclass(frozen=True)
class Pattern:
    """A named pattern with its parameters; use the functions below."""

    kind: str
    parameters: tuple[float, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}({', '.join(f'{value:g}' for value in self.parameters)})"

    def gate(self, seed: int | str) -> Callable[[bool], bool]:
        """Function asked once a cycle, with the valid seen in the cycle before; True: offer, or be ready."""
        return _GATES[self.kind](Random(f"{seed}"), *self.parameters)


def always() -> Pattern:
    """Every cycle."""
    return Pattern("always")


def never() -> Pattern:
    """In no cycle: what a unit does when an output is blocked for good."""
    return Pattern("never")


def withhold(cycles: int) -> Pattern:
    """Not in the first ``cycles`` cycles, always after."""
    return Pattern("withhold", (cycles,))


def bernoulli(p: float) -> Pattern:
    """In each cycle with probability ``p``, independently."""
    if not 0 < p <= 1:
        raise ValueError(f"a probability above 0 and up to 1 is needed, not {p}")
    return Pattern("bernoulli", (p,))


def bursts(on: int, off: int) -> Pattern:
    """Runs of 1 to ``on`` cycles, apart by 1 to ``off``."""
    if on < 1 or off < 1:
        raise ValueError(f"bursts need at least one cycle on and off, not {on} and {off}")
    return Pattern("bursts", (on, off))


def after_valid(cycles: int = 1) -> Pattern:
    """Ready only once valid has been seen for ``cycles`` cycles: a unit whose valid waits for ready never moves."""
    return Pattern("after_valid", (cycles,))


def _always(rng: Random) -> Callable[[bool], bool]:
    return lambda valid: True


def _never(rng: Random) -> Callable[[bool], bool]:
    return lambda valid: False


def _withhold(rng: Random, cycles: float) -> Callable[[bool], bool]:
    left = int(cycles)

    def gate(valid: bool) -> bool:
        nonlocal left
        left -= 1
        return left < 0

    return gate


def _bernoulli(rng: Random, p: float) -> Callable[[bool], bool]:
    return lambda valid: rng.random() < p


def _bursts(rng: Random, on: float, off: float) -> Callable[[bool], bool]:
    open_ = bool(rng.getrandbits(1))
    left = rng.randint(1, int(on if open_ else off))

    def gate(valid: bool) -> bool:
        nonlocal open_, left
        if left == 0:
            open_ = not open_
            left = rng.randint(1, int(on if open_ else off))
        left -= 1
        return open_

    return gate


def _after_valid(rng: Random, cycles: float) -> Callable[[bool], bool]:
    seen = 0

    def gate(valid: bool) -> bool:
        nonlocal seen
        seen = seen + 1 if valid else 0
        if seen >= cycles:
            seen = 0
            return True
        return False

    return gate


_GATES: dict[str, Callable[..., Callable[[bool], bool]]] = {
    "always": _always,
    "never": _never,
    "withhold": _withhold,
    "bernoulli": _bernoulli,
    "bursts": _bursts,
    "after_valid": _after_valid,
}
