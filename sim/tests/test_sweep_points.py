"""The grid of a sweep, and the Pareto front of its rows."""

import random

import pytest

from sim.sweep.pareto import Objective, front, objectives_of
from sim.sweep.points import Axis, Grid, Point
from step_hw.cli.sweep_points import axes_of
from step_lang.errors import BadParameter

GRID = Grid((Axis("rows", (1, 2)), Axis("tile.size", (4, 8, 16), True)), ({"name": "a"}, {"name": "b", "k": 3}))


def test_points_are_all_combinations_in_order():
    points = GRID.points()
    assert len(points) == len(GRID) == 12
    assert points[0] == Point({"name": "a", "rows": 1}, {"tile.size": 4})
    assert points[1] == Point({"name": "a", "rows": 1}, {"tile.size": 8})
    assert points[3] == Point({"name": "a", "rows": 2}, {"tile.size": 4})
    assert points[-1] == Point({"name": "b", "k": 3, "rows": 2}, {"tile.size": 16})
    assert str(points[0]) == "name=a rows=1 tile.size=4"


def test_a_point_is_at_its_index():
    points = GRID.points()
    seen = set()
    for a in range(2):
        for b in range(2):
            for c in range(3):
                assert GRID.point((a, b, c)) == points[GRID.index((a, b, c))]
                assert GRID.choices(GRID.index((a, b, c))) == (a, b, c)
                seen.add(GRID.index((a, b, c)))
    assert seen == set(range(12))


@pytest.mark.parametrize("axes, sets, told", [
    ((Axis("a", (1,)), Axis("a", (2,))), ({},), "'a'.*twice"),
    ((Axis("a", (1, 2, 1)),), ({},), "value 1 twice"),
    ((Axis("a", ()),), ({},), "no value"),
    ((Axis("a", (1,)),), ({"a": 2},), "named parameter sets"),
    (tuple(Axis(f"a{i}", tuple(range(10))) for i in range(7)), ({},), "10000000 vs at most 100000"),
])
def test_bad_grids(axes, sets, told):
    with pytest.raises(BadParameter, match=told):
        Grid(axes, sets)


def test_true_is_not_one():
    assert len(Grid((Axis("a", (1, True)),))) == 2


def test_front():
    rows = [{"cycles": c, "onchip_bytes": b, "error": e} for c, b, e in
            [(3, 3, None), (1, 5, None), (5, 1, None), (3, 4, None), (0, 0, "refused"), (1, 5, None)]]
    assert front(rows, objectives_of("cycles,onchip_bytes")) == [0, 1, 2, 5]
    assert front(rows, objectives_of("cycles")) == [1, 5]
    assert front(rows, objectives_of("max:cycles,onchip_bytes")) == [2]
    assert front([rows[4]], objectives_of("cycles")) == []


def test_front_is_what_its_definition_says():
    generator = random.Random(1)
    objectives = objectives_of("cycles,onchip_bytes,compute_utilisation")
    rows = [{"cycles": generator.randrange(9), "onchip_bytes": generator.randrange(9),
             "compute_utilisation": generator.randrange(9) / 9, "error": None} for _ in range(120)]

    def beats(a, b):
        pairs = [(a["cycles"], b["cycles"]), (a["onchip_bytes"], b["onchip_bytes"]),
                 (b["compute_utilisation"], a["compute_utilisation"])]
        return all(x <= y for x, y in pairs) and any(x < y for x, y in pairs)

    assert front(rows, objectives) == [i for i, row in enumerate(rows) if not any(beats(other, row) for other in rows)]


def test_objectives():
    assert objectives_of("cycles, min:compute_utilisation") == (Objective("cycles"), Objective("compute_utilisation"))
    assert objectives_of("compute_utilisation") == (Objective("compute_utilisation", True),)
    for text, told in (("", "at least one"), ("speed", "'speed' vs one of cycles"), ("cycles,cycles", "twice"),
                       ("best:cycles", "best:cycles"), ("traffic_exact", "vs one of")):
        with pytest.raises(BadParameter, match=told):
            objectives_of(text)


@pytest.mark.parametrize("text", ["rows=1,", "rows=1,,2", "rows=,1", "rows= ,1"])
def test_an_empty_value_between_commas(text):
    """A slip of the hand, no value; a single empty one is a text."""
    with pytest.raises(BadParameter, match=f"--set {text}: an empty value vs values between commas"):
        axes_of([text], [])
    with pytest.raises(BadParameter, match=r"--hw memory\.channels=1,: an empty value"):
        axes_of([], ["memory.channels=1,"])
    assert axes_of(["trace="], []) == (Axis("trace", ("",)),)
