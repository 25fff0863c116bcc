"""Emitted Verilog under ``verilator --lint-only -Wall``: clean but for the waivers, all of which are needed."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import step_hw
from examples import softmax, swiglu
from rtl_tests.test_netlist import HW
from rtl_tests.test_routing_programs import experts, merged
from step_hw.design import Design

WAIVERS = Path(step_hw.__file__).parent / "lint_waivers.vlt"

pytestmark = [pytest.mark.skipif(shutil.which("verilator") is None, reason="verilator is not installed"),
              pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")]


def lint(directory, design, waivers):
    """Warnings and errors, one a line."""
    paths = []
    for name, text in design.verilog.files.items():
        paths.append(directory / name)
        paths[-1].write_text(text)
    command = ["verilator", "--lint-only", "-Wall", "-sv", waivers, "--top-module", design.verilog.top, *paths]
    text = subprocess.run(list(map(str, command)), capture_output=True, text=True).stderr
    return [line for line in text.splitlines() if line.startswith("%")]


@pytest.fixture(scope="module")
def designs():
    """The second with bursts of one element, as large tiles have them; the last two route."""
    wide = replace(HW, memory=replace(HW.memory, burst_bytes=8))
    return [Design(swiglu.build(8, 16, 16, 4, 8), HW), Design(softmax.build(8, 8, 4), wide),
            Design(experts(), HW), Design(merged(), HW)]


def test_clean(designs, tmp_path):
    for i, design in enumerate(designs):
        (tmp_path / str(i)).mkdir()
        assert lint(tmp_path / str(i), design, WAIVERS) == []


def test_every_waiver_has_a_reason_and_is_needed(designs, tmp_path):
    text = WAIVERS.read_text()
    rules = re.findall(r"((?://.*\n)+)lint_off -rule (\w+)", text)
    assert len(rules) == text.count("lint_off -rule")
    none = tmp_path / "none.vlt"
    none.write_text("`verilator_config\n")
    raised = {match for design in designs for line in lint(tmp_path, design, none)
              for match in re.findall(r"^%Warning-(\w+)", line)}
    for _, rule in rules:
        assert any(name.startswith(rule) for name in raised), f"{rule} is waived but never raised"
