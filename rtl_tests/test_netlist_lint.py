"""Emitted Verilog under ``verilator --lint-only -Wall``: clean but for the waivers, all of which are needed."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import step_hw
from examples import matmul, softmax, swiglu
from rtl_tests.test_netlist import HW, int8_matmul
from rtl_tests.test_routing_programs import experts, merged
from step_hw.design import Design
from step_hw.unit_catalogue import unit_catalogue
from step_lang import Program, fn, int32, ops, ragged, scalar
from step_lang.fn.base import Function
from step_lang.hwconfig import HardwareConfig
from step_lang.memory_config import MemoryConfig

WAIVERS = Path(step_hw.__file__).parent / "lint_waivers.vlt"

pytestmark = pytest.mark.skipif(shutil.which("verilator") is None, reason="verilator is not installed")


def lint(directory, modules, top, waivers=WAIVERS):
    """Warnings and errors, one a line, of module name to text."""
    directory.mkdir(exist_ok=True)
    paths = []
    for name, text in modules.items():
        paths.append(directory / f"{name}.v")
        paths[-1].write_text(text)
    command = ["verilator", "--lint-only", "-Wall", "-sv", waivers, "--top-module", top, *paths]
    text = subprocess.run(list(map(str, command)), capture_output=True, text=True).stderr
    return [line for line in text.splitlines() if line.startswith("%")]


def lint_design(directory, design, waivers=WAIVERS):
    modules = dict(zip(design.verilog.modules, design.verilog.files.values()))
    return lint(directory, modules, design.verilog.top, waivers)


def descendants(cls):
    """All subclasses that have a name of their own."""
    found = [deeper for sub in cls.__subclasses__() for deeper in (sub, *descendants(sub))]
    return [sub for sub in found if hasattr(sub, "name")]


def ragged_sums():
    """A program whose input is ragged."""
    with Program("sums") as p:
        stream = ops.input_stream("x", scalar(int32), (2, ragged("n")))
        ops.linear_offchip_store(ops.accum(fn.add(), stream, rank=1, name="total"), p.tensor("y", (2, 1), int32))
    return Design(p, HW, {"x": [[1, 2, 3], []]})


@pytest.fixture(scope="module")
def designs():
    """Name to netlist: bursts larger and smaller than a tile, both memory models, ragged input."""
    small = replace(HW, memory=replace(HW.memory, burst_bytes=8))
    banked = replace(HW, memory=MemoryConfig(model="banked", channels=2, capacity_bytes=1 << 14, banks=4, queue=4))
    return {
        "swiglu": Design(swiglu.build(8, 16, 16, 4, 8), HW),
        "softmax": Design(softmax.build(8, 8, 4), small),
        "matmul_int8": Design(int8_matmul(), HW),
        "banked": Design(int8_matmul(), banked),
        "ragged": ragged_sums(),
        "routing": Design(experts(), HW),
        "merge": Design(merged(), HW),
    }


def test_netlists_are_clean(designs, tmp_path):
    assert {name: lint_design(tmp_path / name, design) for name, design in designs.items()} == {
        name: [] for name in designs}


@pytest.mark.parametrize("tile", [2, pytest.param(4, marks=pytest.mark.deep), pytest.param(16, marks=pytest.mark.deep)])
def test_every_unit_is_clean(tile, tmp_path):
    """Every unit and every function with hardware, under one top that only instantiates them."""
    units = unit_catalogue(tile)
    found = {name: lint(tmp_path, unit.modules(), unit.module_name) for name, unit in units.items()}
    assert found == {name: [] for name in units}


def test_the_catalogue_holds_every_unit_and_every_function_with_hardware():
    kinds = {unit.kind for unit in unit_catalogue(2).values()}
    assert {path.stem for path in (Path(step_hw.__file__).parent / "units").glob("*.py")} - {"__init__"} <= kinds
    applied = {unit.function.name for unit in unit_catalogue(2).values() if hasattr(unit, "function")}
    folded = {unit.function.name for unit in unit_catalogue(2).values() if unit.kind == "accum"}
    functions = [f for f in descendants(Function) if f.__module__.startswith("step_lang.fn.") and f.has_hardware]
    assert len(functions) > 10
    files = {path.stem for path in (Path(step_hw.__file__).parent / "functions").glob("*.py")}
    assert {f.name for f in functions} <= applied
    assert {f.name for f in functions if f.foldable} <= folded
    assert applied <= files


@pytest.mark.deep
@pytest.mark.parametrize("program", [swiglu.build(), softmax.build(), matmul.build(dtype="int8")],
                         ids=["swiglu", "softmax", "matmul_int8"])
@pytest.mark.parametrize("model", ["simple", "banked"])
def test_netlists_of_16_x_16_tiles_are_clean(program, model, tmp_path):
    assert lint_design(tmp_path, Design(program, HardwareConfig(memory=MemoryConfig(model=model)))) == []


def test_every_waiver_has_a_reason_and_is_needed(designs, tmp_path):
    text = WAIVERS.read_text()
    rules = re.findall(r"((?://.*\n)+)lint_off -rule (\w+)", text)
    assert len(rules) == text.count("lint_off -rule")
    none = tmp_path / "none.vlt"
    none.write_text("`verilator_config\n")
    raised = {match for name, design in designs.items() for line in lint_design(tmp_path / name, design, none)
              for match in re.findall(r"^%Warning-(\w+)", line)}
    for _, rule in rules:
        assert any(name.startswith(rule) for name in raised), f"{rule} is waived but never raised"
