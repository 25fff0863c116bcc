"""Calibration finds what a unit does not state: here, by taking the truth away from the model."""

import pytest

from rtl_tests import calibrate as module
from rtl_tests.calibrate import calibrate
from rtl_tests.microbenchmarks import FITTED
from sim.prediction import predict
from step_lang.hwconfig import HardwareConfig

HW = HardwareConfig(tile=4)


@pytest.fixture
def copies_only(monkeypatch):
    """One held-out program, on the fitted ones' netlist."""
    monkeypatch.setattr(module, "HELD_OUT", FITTED[-1:])


def test_nothing_is_left_to_fit(copies_only):
    told: list[str] = []
    found = calibrate(HW, told.append)
    assert told == [bench.name for bench in (*FITTED, FITTED[-1])]
    assert set(found.constants.values()) == {0}
    assert all(row.error == 0 for row in (*found.fitted, *found.held_out))
    assert found.hardware == HW.digest()


def test_an_overhead_that_the_model_does_not_know_is_found(copies_only, monkeypatch):
    """The model is shown memory four cycles faster than RTL: the constant makes up for it, held-out program too."""
    import dataclasses

    fast = dataclasses.replace(HW, memory=dataclasses.replace(HW.memory, latency=HW.memory.latency - 4))

    def misled(graph, hw, constants=None, **options):
        for unit in graph.units:
            if unit.kind == "hbm":
                unit.params = {**unit.params, "memory": fast.memory}
        return predict(graph, fast, constants, **options)

    monkeypatch.setattr(module, "predict", misled)
    found = calibrate(HW)
    assert found.constants["hbm.read_overhead"] == 4
    assert all(abs(row.error) < 0.02 for row in (*found.fitted, *found.held_out))
