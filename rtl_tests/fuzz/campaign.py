"""Many random programs, one after the other: seeded, counted, and shrunk where layers part."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence

from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from hypothesis import strategies as st

from .kitchen import cook
from .layers import run
from .recipe import Recipe, hardware_of
from .steps import OFTEN, SOURCES, STEPS

__all__ = ["check", "fuzz", "program_of", "recipes"]

_NUMBERS = 16
"""Numbers that a step has to choose with."""


def recipes(most_steps: int = 7) -> st.SearchStrategy[Recipe]:
    """Random recipes, for hypothesis."""
    def stripped(numbers: list[int]) -> tuple[int, ...]:
        while numbers and not numbers[-1]:
            numbers = numbers[:-1]
        return tuple(numbers)

    numbers = st.lists(st.integers(0, 11), min_size=_NUMBERS, max_size=_NUMBERS).map(stripped)

    def some(names: Sequence[str], least: int, most: int) -> st.SearchStrategy:
        step = st.tuples(st.sampled_from(sorted(names)), numbers)
        return st.lists(step, min_size=least, max_size=most).map(tuple)

    return st.builds(Recipe, some(list(SOURCES), 1, 3), some([*STEPS, *OFTEN], 2, most_steps), numbers)


def check(recipe: Recipe, simulators: Sequence[str] = ()) -> str:
    """All layers agree; why the program was refused, if it was."""
    hw = hardware_of(recipe)
    made = cook(recipe, hw.tile)
    found = run(made, hw, simulators=simulators)
    assert not found.wrong, f"{made}\n" + "\n".join(found.wrong)
    return found.refused


def program_of(number: int, body: Callable[[Recipe], None], *, shrink: bool = True) -> None:
    """Call ``body`` with the random recipe of seed ``number``, and where it rejects that (`hypothesis.assume`) with the
    next; with simpler ones where it fails.

    One run of hypothesis for each program: within a run it repeats parts of earlier examples, which is not random
    enough to meet every operator in a few hundred programs.
    """
    @seed(number)
    @settings(max_examples=1, deadline=None, database=None, print_blob=False,
              suppress_health_check=list(HealthCheck), phases=[Phase.generate, Phase.shrink][:1 + shrink])
    @given(recipes())
    def one(recipe):
        assume(recipe != _SIMPLEST)  # with which every run begins
        body(recipe)

    one()


_SIMPLEST = Recipe(((min(SOURCES), ()),), ((min(STEPS), ()),) * 2)


def fuzz(programs: int, number: int, simulators: Sequence[str] = ()) -> Counter:
    """``programs`` different programs that no layer refuses, of seeds ``number``, ``number`` + 1, ..; a failing one is
    shrunk, and shown as a recipe. Counts of all by kind of refusal, "ran" for none.

    Prints the seeds, and of one that fails the command that repeats it.
    """
    said: Counter = Counter()
    seen: set[str] = set()

    def one(recipe: Recipe) -> None:
        text = str(cook(recipe, hardware_of(recipe).tile)).partition("\n")[2]
        program = hashlib.sha256(f"{hardware_of(recipe)}{text}".encode()).hexdigest()
        assume(program not in seen)
        refused = check(recipe, simulators)
        seen.add(program)
        said[refused.partition(":")[0] or "ran"] += 1
        assume(not refused)

    print(f"seeds {number} .. {number + programs - 1}", flush=True)
    for its in range(number, number + programs):
        try:
            program_of(its, one)
        except BaseException:
            named = f" --simulators {','.join(simulators)}" if simulators else ""
            print(f"seed {its} failed; again: python -m rtl_tests.fuzz --seed {its}{named}", flush=True)
            raise
    print(dict(said), flush=True)
    return said
