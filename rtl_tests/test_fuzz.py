"""Random programs: every layer gives the same bits, the same traffic, the same cycles."""

import pytest

from rtl_tests.fuzz import random_program, run
from step_lang.hwconfig import HardwareConfig

HW = HardwareConfig(tile=2, link_depth=16)  # deep enough for most forks that join again


def outcomes(seeds, hw=HW, **options):
    """How many programs ran. A difference fails with the program and its seed."""
    ran = 0
    for seed in seeds:
        made = random_program(seed, hw.tile)
        print(f"seed {seed}")  # shown when a layer raises what is no StepError
        found = run(made, hw, **options)
        print(found.refused or "ran")
        assert not found.wrong, f"{made}\n" + "\n".join(found.wrong)
        ran += not found.refused
    return ran


def test_the_same_seed_is_the_same_program():
    assert str(random_program(7, 2)) == str(random_program(7, 2)) != str(random_program(8, 2)).replace("8", "7")


def test_interpreter_lowering_and_model_agree():
    assert outcomes(range(30)) >= 15


@pytest.mark.deep
def test_more_of_them():
    assert outcomes(range(1000, 1400)) >= 200
    assert outcomes(range(2000, 2200), HardwareConfig(tile=4, link_depth=32, k_per_cycle=1)) >= 100
