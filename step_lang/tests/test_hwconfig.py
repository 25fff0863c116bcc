"""Hardware configuration: defaults, reading, writing, errors."""

from __future__ import annotations

import dataclasses

import pytest

from step_lang.errors import ConfigError
from step_lang.hwconfig import KEYS, TILES, HardwareConfig, default_toml
from step_lang.memory_config import MemoryConfig


def test_an_empty_file_is_the_default():
    assert HardwareConfig.from_toml("") == HardwareConfig()
    assert HardwareConfig().k_per_cycle == HardwareConfig().tile == 16


@pytest.mark.parametrize("tile", TILES)
def test_default_toml_reads_back_and_explains_every_key(tile):
    text = default_toml(tile)
    assert HardwareConfig.from_toml(text) == HardwareConfig(tile=tile)
    for key in KEYS:
        assert f"# {key.meaning}\n{key.name} = " in text
    for entry in dataclasses.fields(MemoryConfig):
        assert f"\n{entry.name} = " in text


def test_everything_set_reads_back():
    hw = HardwareConfig(tile=4, k_per_cycle=2, rows_per_cycle=4, link_depth=3, link_depths={"b": 7, "a": 9},
                        accumulator_entries=5, scratchpad_frames=32, page_frames=4, references=3, load_window=16,
                        input_tokens=64, memory=MemoryConfig(channels=8, model="banked"))
    assert HardwareConfig.from_toml(hw.to_toml()) == hw
    assert list(hw.link_depths) == ["a", "b"]


def test_digest_depends_on_every_value_and_on_nothing_else():
    hw = HardwareConfig(tile=8)
    others = [dataclasses.replace(hw, **change) for change in (
        {"tile": 16, "k_per_cycle": 8}, {"k_per_cycle": 4}, {"rows_per_cycle": 4}, {"link_depth": 3},
        {"link_depths": {"x": 4}},
        {"accumulator_entries": 1}, {"scratchpad_frames": 64}, {"page_frames": 4}, {"references": 2},
        {"load_window": 8},
        {"input_tokens": 8}, {"memory": MemoryConfig(latency=15)})]
    assert len({config.digest() for config in [hw, *others]}) == len(others) + 1
    assert HardwareConfig.from_toml(hw.to_toml()).digest() == hw.digest()


@pytest.mark.parametrize("text, message", [
    ("[tile]\nsize = 3", r"key 'tile.size': 3 vs 2, 4, 8, 16"),
    ("[tile]\nsize = '4'", r"key 'tile.size': '4' vs 2, 4, 8, 16"),
    ("[tile]\nsize = true", r"key 'tile.size': True vs"),
    ("[tile]\nsize = 4\nk_per_cycle = 3", r"key 'tile.k_per_cycle': 3 vs a divisor of tile.size = 4"),
    ("[tile]\nsize = 4\nrows_per_cycle = 8", r"key 'tile.rows_per_cycle': 8 vs a divisor"),
    ("[tile]\nsizes = 4", r"unknown key 'tile.sizes' = 4 vs k_per_cycle, rows_per_cycle, size"),
    ("[tiles]\nsize = 4", r"unknown section 'tiles' vs accumulator, input, link, load, memory, rows, scratchpad, tile"),
    ("tile = 4", r"unknown section 'tile' vs"),
    ("[link]\ndepth = 1", r"key 'link.depth': 1 vs an int in 2..4096"),
    ("[link.depths]\nx = 1", r"key 'link.depths.x': 1 vs an int in 2..4096"),
    ("[link]\ndepths = 4", r"key 'link.depths': 4 vs a table"),
    ("[scratchpad]\nframes = 100", r"key 'scratchpad.frames': 100 vs a multiple of scratchpad.page_frames = 8"),
    ("[scratchpad]\npage_frames = 64\nframes = 100", r"'scratchpad.frames': 100 vs a multiple"),
    ("[scratchpad]\npage_frames = 3\nframes = 9", r"'scratchpad.page_frames': 3 vs a power of two"),
    ("[load]\nwindow = 48", r"'load.window': 48 vs a power of two"),
    ("[memory]\nchannel = 4", r"unknown key 'memory.channel' = 4 vs preset, clock_mhz, model, channels"),
    ("[memory]\nchannels = 'four'", r"key 'memory.channels': 'four' vs a value of type int"),
    ("[memory]\nchannels = 3", r"memory.channels: 3 vs a power of two"),
    ("[tile\nsize = 4", r"not TOML \(.*\) vs key = value lines"),
])
def test_bad_files(text, message):
    with pytest.raises(ConfigError, match=message):
        HardwareConfig.from_toml(text)


def test_missing_file(tmp_path):
    with pytest.raises(ConfigError, match="No such file or directory vs a readable TOML file"):
        HardwareConfig.load(tmp_path / "hw.toml")


def test_file(tmp_path):
    path = tmp_path / "hw.toml"
    path.write_text(HardwareConfig(tile=2).to_toml())
    assert HardwareConfig.load(path) == HardwareConfig(tile=2)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8"):
        HardwareConfig.load(path)
