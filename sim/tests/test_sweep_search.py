"""The search for a Pareto front: its front is the whole grid's, with a part of its points."""

import pytest

from examples import swiglu
from sim.sweep.evaluate import Case, evaluate
from sim.sweep.pareto import front, objectives_of
from sim.sweep.points import Axis, Grid
from sim.sweep.search import BATCH, search
from step_lang.errors import StepError
from step_lang.hwconfig import HardwareConfig
from step_lang.memory_config import MemoryConfig

SIZES = {"batch": 16, "hidden": 16, "intermediate": 32}
GRID = Grid((Axis("tile_b", (16, 4, 8)), Axis("tile_f", (4, 8, 16, 32)), Axis("link.depth", (2, 4, 8), True),
             Axis("memory.channels", (1, 2, 4), True), Axis("memory.interval", (4, 2), True)))
BUDGET = 54
"""A quarter of the 216 points."""
OBJECTIVES = objectives_of("cycles,onchip_bytes")


@pytest.fixture(scope="module")
def rows():
    """All rows of ``GRID`` on SwiGLU at T = 4; one accumulator is too small for some."""
    found = []
    for point in GRID.points():
        memory = MemoryConfig(channels=point.hardware["memory.channels"], interval=point.hardware["memory.interval"],
                              burst_bytes=32)
        hw = HardwareConfig(tile=4, link_depth=point.hardware["link.depth"], accumulator_entries=12, memory=memory)
        try:
            found.append({**evaluate(Case(swiglu.build(**SIZES, **point.parameters), hw)), "error": None})
        except StepError as error:
            found.append({"error": str(error)})
    return found


def searched(rows, budget, seed):
    asked = []

    def evaluate(positions):
        assert len(positions) <= BATCH and len(set(positions)) == len(positions)
        assert not set(positions) & set(asked), "a point was evaluated twice"
        asked.extend(positions)
        return [rows[position] for position in positions]

    found = search(GRID, OBJECTIVES, budget, seed, evaluate)
    assert list(found) == asked and len(asked) <= budget
    return found


def costs(rows, positions):
    return {tuple(objective.cost(rows[i]) for objective in OBJECTIVES) for i in positions}


def test_its_front_is_the_grids(rows):
    best = costs(rows, front(rows, OBJECTIVES))
    refused = sum(row["error"] is not None for row in rows)
    assert len(rows) == 4 * BUDGET and refused == 72 and len(best) == 5, "a front that is worth looking for"
    whole = 0
    for seed in range(6):
        found = searched(rows, BUDGET, seed)
        at = list(found)
        front_found = costs(rows, [at[i] for i in front(list(found.values()), OBJECTIVES)])
        assert len(best - front_found) <= 1, seed
        whole += front_found == best
    assert whole >= 5, "of 6 searches with a quarter of the points"


def test_the_same_seed_chooses_the_same_points(rows):
    assert list(searched(rows, 30, 5)) == list(searched(rows, 30, 5)) != list(searched(rows, 30, 6))


def test_more_points_than_there_are(rows):
    small = Grid((Axis("a", (1, 2, 3)), Axis("name", ("x", "y", True))))
    made = [{"cycles": a * b, "onchip_bytes": -a - b, "error": "no" if a == b else None} for a in range(3) for b in
            range(3)]
    assert sorted(search(small, OBJECTIVES, 100, 0, lambda at: [made[i] for i in at])) == list(range(9))
