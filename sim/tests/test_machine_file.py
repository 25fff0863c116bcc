"""Machines of tile fidelity by name and from files."""

import re

import pytest

from examples import simplified_moe, swiglu
from sim.tests.sweep_cases import copy_program
from sim.tile import BeatMachine, RooflineMachine, predict
from sim.tile.capacity import check_capacity, check_units
from sim.tile.machine_file import machine_of
from step_hw.design import Design
from step_lang import Program, bf16, fn, ops
from step_lang.errors import ConfigError, HardwareTooSmall
from step_lang.hwconfig import HardwareConfig
from step_lang.memory_config import MemoryConfig


def test_names():
    hw = HardwareConfig(tile=4)
    assert machine_of("hardware", hw) == BeatMachine(hw)
    assert machine_of("paper", hw) == RooflineMachine()
    assert machine_of("paper", hw).memory.peak_bytes_per_cycle == 1024


def test_a_file_changes_what_it_names(tmp_path):
    path = tmp_path / "machine.toml"
    path.write_text("[roofline]\ncompute_bw = 4096\n[memory]\nchannels = 16\n")
    machine = machine_of(str(path), HardwareConfig())
    assert machine.compute_bw == 4096 and machine.onchip_bandwidth == 64
    assert machine.memory.channels == 16 and machine.memory.interval == 2


@pytest.mark.parametrize("text, told", [
    ("[roofline]\ncompute = 1\n", "unknown key 'roofline.compute' vs compute_bw"),
    ("[roofline]\ncompute_bw = 0\n", "key 'roofline.compute_bw': 0 vs an int of at least 1"),
    ("[roofline]\ndepth = true\n", "key 'roofline.depth': True vs an int"),
    ("roofline = 5\n", "roofline = 5 vs a section [roofline]"),
    ("memory = 5\n", "memory = 5 vs a section [memory]"),
    ("[tile]\nsize = 4\n", "unknown section 'tile' vs memory, roofline"),
    ("[memory]\nchannels = 3\n", "memory.channels: 3 vs a power of two"),
    ("roofline", "not TOML"),
])
def test_mistakes(tmp_path, text, told):
    path = tmp_path / "machine.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=re.escape(told)):
        machine_of(str(path), HardwareConfig())


def test_no_file():
    with pytest.raises(ConfigError, match="'hardware', 'paper' or a readable TOML file"):
        machine_of("nowhere.toml", HardwareConfig())


def test_tensors_that_the_memory_does_not_hold():
    """At tile fidelity as at beat fidelity, and the fix is enough."""
    program = copy_program(2, 2)  # two tensors of 128 bytes
    small, enough = (MemoryConfig(capacity_bytes=size, burst_bytes=16, channels=1) for size in (128, 256))
    for machine in (BeatMachine(HardwareConfig(tile=4, memory=small)), RooflineMachine(memory=small)):
        with pytest.raises(HardwareTooSmall, match=r"'y': 256 bytes vs 128; fix: set .* to at least 256"):
            predict(program, machine)
    check_capacity(program, enough)


def test_buffers_that_the_scratchpads_do_not_hold():
    """Those that lowering makes, too; what beat fidelity says, and its fix is enough."""
    program = swiglu.build()
    small, enough = (HardwareConfig(scratchpad_frames=frames) for frames in (56, 64))
    with pytest.raises(HardwareTooSmall, match=r"set scratchpad\.frames to at least 64") as told:
        predict(program, BeatMachine(small))
    with pytest.raises(HardwareTooSmall) as same:
        assert Design(program, small).graph
    assert str(told.value) == str(same.value)
    check_units(program, enough)


def _split() -> Program:
    with Program("split") as p:
        tiles = ops.linear_offchip_load(p.tensor("x", (8, 64), bf16), (8, 64), shape=(1,))
        ops.linear_offchip_store(ops.flat_map(fn.split_rows(rows=1), tiles), p.tensor("y", (8, 64), bf16))
    return p


@pytest.mark.parametrize(("module", "settings", "key"), [
    (swiglu, {"scratchpad_frames": 4096, "accumulator_entries": 4}, "accumulator.entries to at least"),
    (simplified_moe, {"row_columns": 8}, "rows.columns to at least"),
    (None, {"row_columns": 8}, "rows.columns to at least 16")])
def test_states_and_rows_that_the_units_do_not_hold(module, settings, key):
    """Of products of tiles, of rows that are packed, of tiles that are split: what beat fidelity says."""
    program = module.build() if module else _split()
    small = HardwareConfig(tile=4, **settings)
    with pytest.raises(HardwareTooSmall, match=key) as told:
        predict(program, BeatMachine(small), module.streams(program) if hasattr(module, "streams") else {})
    with pytest.raises(HardwareTooSmall) as same:
        assert Design(program, small).graph
    assert str(told.value) == str(same.value)
