"""The benches catch the faults of `rtl_tests.mutants`."""

import pytest

from rtl_tests.harness.build import installed
from rtl_tests.mutants.fault import ROOT, Fault, FaultError, units
from rtl_tests.mutants.run import run

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


def test_a_fault_that_is_not_in_the_source_is_an_error():
    fault = Fault("x/1", "none", "step_hw/link.py", "no such text", "other")
    with pytest.raises(FaultError, match="has its text 0 times vs once"):
        fault.apply((ROOT / fault.file).read_text())
