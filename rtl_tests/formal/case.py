"""A proof: a unit of one configuration, what is to hold, how far it is searched, and the faults that it must find."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from types import ModuleType

from .btor import TransitionSystem
from .faults import Fault, faulty_module
from .harness import Harness
from .solver import Verdict, bounded, inductive
from .trace import beats_of
from .translate import system_of

__all__ = ["Case"]


@dataclass(frozen=True)
class Case:
    """One proof.

    unit : what docs/FORMAL.md calls it
    module : module of the unit's class, which ``build`` gets, with or without a fault in it
    build : the harness
    depth : cycles of the bounded proof
    induction : cycles before the step of the proof by induction; None: it does not close
    quick : cycles of the bounded proof in the default tests; 0: it is left to the deep ones
    faults : at least three; the first is tried by default
    """

    unit: str
    module: str
    build: Callable[[ModuleType], Harness]
    depth: int
    induction: int | None = None
    quick: int = 5
    faults: tuple[Fault, ...] = field(default=(), repr=False)

    def harness(self, fault: Fault | None = None) -> Harness:
        """The harness around the unit, or around one with ``fault``."""
        if fault is None:
            return self.build(importlib.import_module(self.module))
        with faulty_module(fault, self.module) as module:
            return self.build(module)

    @cached_property
    def system(self) -> TransitionSystem:
        """The right unit's."""
        return system_of(self.harness())

    def prove(self, depth: int | None = None, seconds: float = 600) -> Verdict:
        """The bounded proof."""
        return bounded(self.system, depth or self.depth, seconds=seconds)

    def induct(self, seconds: float = 600) -> Verdict:
        """The proof by induction. ``depth`` of the verdict is the k at which it closed."""
        assert self.induction is not None
        return inductive(self.system, self.induction, seconds=seconds)

    def find(self, fault: Fault, seconds: float = 600) -> tuple[Verdict, str]:
        """What the bounded proof, without invariants, finds of ``fault``, and the counterexample as beats."""
        system = system_of(self.harness(fault))
        verdict = bounded(system, self.depth, seconds=seconds, helpers=False)
        return verdict, "" if verdict.run is None else beats_of(system, verdict.run)

    def properties(self) -> list[str]:
        """What is proven, by label."""
        return [label.removeprefix("prove__").replace("_", " ") for label in self.harness().labels
                if label.startswith("prove__")]
