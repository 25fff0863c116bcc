"""What `benchmarks.instructions` compares: every workload has a recorded figure, and what exceeds it is told."""

from benchmarks.instructions import CASES, TOLERANCE, judge
from benchmarks.instructions import _recorded as recorded


def test_every_workload_is_recorded():
    assert set(recorded()["instructions"]) == set(CASES)


def test_worse_than_recorded_is_told():
    before = {"a": 1000.0, "b": 1000.0}
    assert judge({"a": 1000 * (1 + TOLERANCE), "b": 10, "new": 9000}, before) == []
    assert judge({"a": 1050, "b": 1000}, before) == ["a: 1,050 instructions vs 1,000 recorded (+5.0%)"]
