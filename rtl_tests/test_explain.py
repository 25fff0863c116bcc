"""Where RTL and model part: said only when they do, and then at the right link and beat."""

import dataclasses

import numpy as np
import pytest

from examples.data import random_tensors
from rtl_tests.cosim import run_rtl
from rtl_tests.explain import explain
from rtl_tests.microbenchmarks import FITTED
from sim.prediction import predict
from step_hw.design import Design
from step_lang.hwconfig import HardwareConfig

HW = HardwareConfig(tile=4)


@pytest.fixture(scope="module")
def copied():
    """(design, tensors, RTL run) of a copy."""
    design = Design(FITTED[1].build(HW), HW)
    tensors = random_tensors(design.program, 0)
    return design, tensors, run_rtl(design, tensors)


def test_agreement(copied):
    design, tensors, run = copied
    found = explain(design, run, predict(design.graph, HW, trace=True), tensors)
    assert found.divergences == []
    assert found.text == "RTL and model agree: 17 beats on 1 link, each in the same cycle"


@pytest.mark.parametrize("late", [1, 3])
def test_a_wrong_constant_shows_at_the_first_loaded_beat(copied, late):
    design, tensors, run = copied
    constants = {"hbm.read_overhead": late, "hbm.write_overhead": 0}
    found = explain(design, run, predict(design.graph, HW, constants, trace=True), tensors, constants)
    [first] = found.divergences
    assert (first.link, first.beat, first.model_cycle - first.rtl_cycle) == ("load_x", 0, late)
    assert first.cycle == first.rtl_cycle
    lines = found.text.splitlines()
    assert lines[0].startswith(
        "RTL and model part on 1 of 1 links; first on link 'load_x', beat 0: RTL moves it in cycle "
    )
    assert [line.split()[0] for line in lines if line.endswith("<-- first difference")] == ["0"]
    assert any(line.startswith("  load_x (load, ") and "; model " in line for line in lines)
    assert any(line.startswith("  store_y (store, ") for line in lines)


def tampered(run, change):
    """The run with its records changed."""
    records = run.native.records.copy()
    return dataclasses.replace(run, native=dataclasses.replace(run.native, records=change(records)))


def test_one_late_beat_is_found_in_the_middle(copied):
    design, tensors, run = copied

    def later(records):
        records["cycle"][5] += 1
        return records

    found = explain(design, tampered(run, later), predict(design.graph, HW, trace=True), tensors)
    assert (found.divergences[0].beat, found.divergences[0].rtl_cycle) == (5, found.divergences[0].model_cycle + 1)


def test_a_wrong_stop_is_a_difference_too(copied):
    design, tensors, run = copied

    def stopped(records):
        records["stop"][5] ^= 1
        return records

    found = explain(design, tampered(run, stopped), predict(design.graph, HW, trace=True), tensors)
    assert found.divergences[0].beat == 5


def test_a_beat_that_never_comes(copied):
    design, tensors, run = copied
    found = explain(design, tampered(run, lambda records: records[:-2]), predict(design.graph, HW, trace=True), tensors)
    [first] = found.divergences
    assert (first.beat, first.rtl_cycle) == (15, -1)
    assert "RTL never moves it" in found.text
    prediction = predict(design.graph, HW, trace=True)
    prediction.outcome.trace = prediction.outcome.trace[:-1]
    found = explain(design, run, prediction, tensors)
    assert "model never moves it" in found.text and np.isscalar(found.divergences[0].cycle)
