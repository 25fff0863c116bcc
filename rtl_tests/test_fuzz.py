"""Random programs: every layer gives the same bits, the same tokens, the same traffic, the same cycles."""

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, assume, given, seed, settings

from rtl_tests.fuzz import Recipe, cook, recipes, run
from rtl_tests.harness.build import installed
from rtl_tests.harness.run import default_seed
from step_lang.hwconfig import HardwareConfig

HW = HardwareConfig(tile=2, link_depth=16)  # deep enough for most forks that join again


def check(recipe: Recipe, simulators: Sequence[str] = (), hw: HardwareConfig = HW) -> str:
    """All layers agree; why the program was refused, if it was."""
    made = cook(recipe, hw.tile)
    found = run(made, hw, simulators=simulators)
    assert not found.wrong, f"{made}\n" + "\n".join(found.wrong)
    return found.refused


def fuzz(programs: int, number: int, simulators: Sequence[str] = (), hw: HardwareConfig = HW) -> Counter:
    """``programs`` that no layer refuses; a failing one is shrunk, and shown as a recipe. Counts of all by kind of
    refusal."""
    said: Counter = Counter()

    @seed(number)
    @settings(max_examples=programs, deadline=None, database=None, print_blob=False,
              suppress_health_check=list(HealthCheck))
    @given(recipes())
    def one(recipe):
        refused = check(recipe, simulators, hw)
        said[refused.partition(":")[0] or "ran"] += 1
        assume(not refused)

    print(f"seed {number}, simulators {', '.join(simulators) or 'none'}")
    one()
    print(dict(said))
    return said


def test_the_same_recipe_is_the_same_program():
    recipe = Recipe((("load", (1, 0, 2)), ("scalars", (1, 1, 2, 3))), (("accum", (1,)), ("partition", (0, 1, 1))))
    assert str(cook(recipe)) == str(cook(recipe))


#: Programs in which layers once parted, as hypothesis shrank them.
FOUND = {
    "flags of a reshape of tiles": Recipe(
        (("load", ()),), (("reshape", (0, 0, 0, 0, 2)), ("there_and_back", ()))),
    "empty groups through a sum along rows": Recipe(
        (("load", ()),), (("there_and_back", ()), ("accum", ()), ("reduce", (0, 1)), ("accum", ()))),
    "nothing chosen, so that the stores end before the loads": Recipe(
        (("load", ()),), (("binary", ()), ("there_and_back", ()))),
    "empty vectors of tiles that are repeated": Recipe(
        (("load", (1, 2, 2, 1)),), (("by_reference", (0, 0, 0, 1, 0, 2)), ("repeat", (0, 1)))),
    "a tile of one row split into rows": Recipe(
        (("load", (1, 0, 2, 1, 0, 1)),), (("packed", (1, 0, 0, 1, 1)),)),
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    assert not check(FOUND[name])


def test_layers_agree():
    assert fuzz(24, default_seed())["ran"] >= 24


def test_rtl_agrees():
    reason = installed("icarus")
    if reason:
        pytest.skip(reason)
    assert fuzz(6, default_seed() + 1, ["icarus"])["ran"] >= 6


@pytest.mark.deep
@pytest.mark.parametrize("part", range(10))
def test_500_programs(both_simulators, part):
    assert fuzz(50, default_seed() + 100 + part, both_simulators)["ran"] >= 50


@pytest.mark.deep
@pytest.mark.parametrize("hw", [
    HardwareConfig(tile=4, link_depth=32, k_per_cycle=1),
    HardwareConfig(tile=2, link_depth=2, rows_per_cycle=1),
], ids=["T_4", "short_links"])
def test_other_hardware(hw):
    assert fuzz(200, default_seed() + 200, hw=hw)["ran"] >= 200
