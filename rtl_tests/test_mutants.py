"""The benches catch the faults of `rtl_tests.mutants`."""

import pytest

from rtl_tests.harness.build import installed
from rtl_tests.mutants.fault import ROOT, Fault, FaultError, units
from rtl_tests.mutants.run import Outcome, run
from rtl_tests.mutants.table import PAGE, head, named_faults, row, rows_of, write

#: A fault each of units whose benches are quick, run by default; the others with the deep tests.
SLICE = ("repeat/9", "reassemble/12", "link/3", "partition/8")
FAULTS = [(unit, fault) for unit in units().values() for fault in unit.faults]


@pytest.mark.parametrize("unit, fault", [
    pytest.param(unit, fault, id=fault.name, marks=() if fault.name in SLICE else pytest.mark.deep)
    for unit, fault in FAULTS])
def test_is_caught(unit, fault):
    reason = installed("icarus")
    if reason:
        pytest.skip(reason)
    assert run(unit, fault).caught, f"{fault.name}, {fault.what}: the bench of {unit.name} passes"


def test_every_fault_is_in_the_source():
    for _, fault in FAULTS:
        fault.apply((ROOT / fault.file).read_text())


def test_every_unit_has_ten():
    assert set(SLICE) <= {fault.name for _, fault in FAULTS}
    for file in sorted((ROOT / "step_hw" / "units").glob("[a-z]*.py")):
        assert file.stem in units(), f"step_hw/units/{file.name}: no faults; add rtl_tests/mutants/units/{file.name}"
    for unit in units().values():
        assert len({(fault.file, fault.old, fault.new) for fault in unit.faults}) >= 10, unit.name


def test_the_page_is_of_these_faults():
    text = PAGE.read_text()
    assert text.startswith(head())
    told = {name: named_faults(line) for name, line in rows_of(text).items()}
    assert told == {name: (len(unit.faults), 0) for name, unit in units().items()}, (
        "write docs/MUTANTS.md anew: python -m rtl_tests.mutants --table [unit ..]")


def test_a_row_says_which_tests_caught_the_faults(tmp_path):
    unit, page = units()["repeat"], tmp_path / "page.md"
    tests = ["rtl_tests/test_repeat.py::test_latency[icarus]", "rtl_tests/test_repeat.py::test_streams[icarus-2]"]
    outcomes = [Outcome(fault, tests[k > 2] if k else None, "", 1.0) for k, fault in enumerate(unit.faults)]
    line = row(unit, outcomes)
    assert line == "| repeat | 12 | 1 | `test_streams` 9, `test_latency` 2 |" and named_faults(line) == (12, 1)
    write({"zip": "| zip | 14 | 0 | `test_streams` 14 |"}, page)
    write({"repeat": line}, page)
    assert list(rows_of(page.read_text())) == ["repeat", "zip"] and page.read_text().startswith(head())


def test_a_fault_that_is_not_in_the_source_is_an_error():
    fault = Fault("x/1", "none", "step_hw/link.py", "no such text", "other")
    with pytest.raises(FaultError, match="has its text 0 times vs once"):
        fault.apply((ROOT / fault.file).read_text())
