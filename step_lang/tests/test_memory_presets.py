"""Presets of off-chip memory: public figures, conversion to cycles, use in a hardware configuration."""

from __future__ import annotations

import pytest

from step_lang.errors import ConfigError
from step_lang.hwconfig import HardwareConfig
from step_lang.memory_config import MemoryConfig
from step_lang.memory_presets import memory_preset, memory_presets

BANKED = ("hbm2", "hbm2e", "hbm3")
GB_PER_S = {"hbm2": 256, "hbm2e": 410, "hbm3": 819}
"""A stack's bandwidth as JEDEC and vendors announce it."""


def memory(text: str) -> MemoryConfig:
    return HardwareConfig.from_toml("[memory]\n" + text).memory


def test_presets_are_these_and_name_their_source():
    assert list(memory_presets()) == [*BANKED, "paper"]
    for preset in memory_presets().values():
        assert len(preset.source) > 30 and preset.meaning
        assert memory(f"preset = '{preset.name}'") == MemoryConfig(**preset.keys())


@pytest.mark.parametrize("name", BANKED)
def test_a_stack_has_its_public_bandwidth(name):
    assert memory_preset(name).peak_bytes_per_ns == pytest.approx(GB_PER_S[name], abs=0.5)
    for clock in (500, 1000, 1600):
        config = memory(f"preset = '{name}'\nclock_mhz = {clock}")
        # Whole cycles for a burst lose at most 2%, and never gain.
        assert 0.98 * GB_PER_S[name] <= config.peak_bytes_per_cycle * clock / 1000 <= GB_PER_S[name] + 0.5
    assert memory(f"preset = '{name}'").peak_bytes_per_cycle == pytest.approx(GB_PER_S[name], abs=0.5)


@pytest.mark.parametrize("name", BANKED)
def test_a_stack_has_its_size(name):
    """Channels x banks x rows x row: a power of two of rows, as the standards have."""
    config = memory(f"preset = '{name}'")
    rows, rest = divmod(config.capacity_bytes, config.channels * config.banks * config.row_bytes)
    assert rest == 0 and rows in (1 << 14, 1 << 15)
    assert config.channels * memory_preset(name).pins == 1024


def test_paper_is_the_memory_of_the_paper():
    config = memory("preset = 'paper'")
    assert (config.model, config.channels, config.burst_bytes, config.startup) == ("simple", 32, 64, 14)
    assert config.peak_bytes_per_cycle == 1024


@pytest.mark.parametrize("name, clock, burst", [
    ("hbm2", 1000, (32, 2)), ("hbm2e", 1000, (128, 5)), ("hbm3", 1000, (128, 5)),
    ("hbm2e", 1600, (32, 2)), ("hbm3", 1600, (32, 2)), ("hbm2", 500, (32, 1)), ("hbm3", 800, (32, 1)),
    ("hbm2", 1001, (1024, 65)),          # 2.002 cycles an access: 64.064 for a row is the first within 2%
    ("hbm3", 10, (1024, 1)),             # a whole row in less than a cycle: the row
])
def test_a_burst_is_as_short_as_whole_cycles_allow(name, clock, burst):
    keys = memory_preset(name).keys(clock)
    assert (keys["burst_bytes"], keys["bl"]) == burst and keys["tccd"] == keys["bl"]


@pytest.mark.parametrize("name", BANKED)
@pytest.mark.parametrize("clock", [333, 800, 1000, 1735])
def test_cycles_are_never_shorter_than_the_nanoseconds(name, clock):
    preset = memory_preset(name)
    keys = preset.keys(clock)
    for key, time in preset.ns.items():
        cycle = 1000 / clock
        if key == "trefi":
            assert time - cycle < keys[key] * cycle <= time + 1e-6
        else:
            assert time - 1e-6 <= keys[key] * cycle < time + cycle
    MemoryConfig(**keys)


def test_at_the_memory_s_own_clock_cycles_are_those_of_the_source():
    keys = memory_preset("hbm3").keys(1600)
    assert [keys[key] for key in ("cl", "trcd", "trp", "tras", "twr", "trtp", "cwl", "twtr", "trrd", "tfaw", "trefi")] \
        == [23, 23, 23, 55, 26, 10, 7, 13, 2, 48, 6240]
    keys = memory_preset("hbm2").keys()
    assert all(keys[key] == time for key, time in memory_preset("hbm2").ns.items())


def test_given_keys_override_the_preset():
    config = memory("preset = 'hbm2'\nchannels = 4\ntrefi = 0\ncapacity_bytes = 65536")
    assert (config.channels, config.trefi, config.capacity_bytes) == (4, 0, 65536)
    assert config.trcd == 12 and config.model == "banked"


def test_a_written_configuration_holds_the_numbers():
    hw = HardwareConfig.from_toml("[memory]\npreset = 'hbm2e'\nclock_mhz = 800")
    assert HardwareConfig.from_toml(hw.to_toml()) == hw
    assert "\npreset" not in hw.to_toml() and "# preset, one of hbm2, hbm2e, hbm3, paper" in hw.to_toml()


@pytest.mark.parametrize("text, message", [
    ("preset = 'hbm4'", r"key 'memory.preset': 'hbm4' vs hbm2, hbm2e, hbm3, paper"),
    ("preset = 2", r"key 'memory.preset': 2 vs hbm2"),
    ("clock_mhz = 800", r"key 'memory.clock_mhz': 800 vs no preset"),
    ("preset = 'hbm2'\nclock_mhz = 0", r"key 'memory.clock_mhz': 0 vs an int in 1..10000"),
    ("preset = 'hbm2'\nclock_mhz = 1.5", r"key 'memory.clock_mhz': 1.5 vs an int"),
    ("preset = 'paper'\nclock_mhz = 800", r"key 'memory.clock_mhz': 800 vs preset 'paper', which is stated in cycles"),
    ("preset = 'hbm2'\nchannels = 3", r"memory.channels: 3 vs a power of two"),
])
def test_wrong_presets(text, message):
    with pytest.raises(ConfigError, match=message):
        memory(text)
