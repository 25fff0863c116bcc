"""The hardware configuration: what a netlist is built for, read from a TOML file.

Every key has a default (`KEYS`), so an empty file is a valid configuration. ``HardwareConfig.to_toml`` writes all
keys with the comment that explains each.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import ConfigError
from .memory_config import MemoryConfig
from .memory_presets import memory_preset, memory_presets

__all__ = ["KEYS", "TILES", "HardwareConfig", "Key", "default_toml"]

TILES = (2, 4, 8, 16)
"""Physical tile sizes T that the hardware supports."""


@dataclass(frozen=True)
class Key:
    """One key of the file: section, name, default (None: derived), allowed range and what it means."""

    section: str
    name: str
    default: int | None
    least: int
    most: int
    meaning: str
    allowed: tuple[int, ...] = ()

    def check(self, value: object) -> int:
        """``value`` if allowed. Raises `ConfigError` naming key, value and what is allowed."""
        limits = ", ".join(map(str, self.allowed)) if self.allowed else f"an int in {self.least}..{self.most}"
        if isinstance(value, bool) or not isinstance(value, int) or (
                value not in self.allowed if self.allowed else not self.least <= value <= self.most):
            raise ConfigError(f"key '{self.section}.{self.name}': {value!r} vs {limits}")
        return value


KEYS: tuple[Key, ...] = (
    Key("tile", "size", 16, 2, 16, "T: a physical tile is T x T elements", TILES),
    Key("tile", "k_per_cycle", None, 1, 16,
        "products summed exactly by a dot product cell in one cycle; divides T; default T"),
    Key("tile", "rows_per_cycle", None, 1, 16,
        "rows of T elements that an elementwise unit serves a cycle; divides T; an operator's compute_bw overrides it; "
        "default T / 4, at least 1: a tile in four cycles, which is what the default memory delivers at T = 16"),
    Key("link", "depth", 2, 2, 4096, "beats that a link holds"),
    Key("accumulator", "entries", 64, 1, 65536, "tiles of state an accum or scan unit holds"),
    Key("scratchpad", "frames", 256, 1, 1 << 20, "tiles that a bufferize's scratchpad holds; multiple of page_frames"),
    Key("scratchpad", "page_frames", 8, 1, 1 << 16, "tiles to a page of the scratchpad"),
    Key("scratchpad", "references", 4, 1, 256, "buffers that may be live in a scratchpad at a time"),
    Key("load", "window", 64, 2, 4096, "elements in flight in a load's reorder window, a power of two"),
    Key("rows", "columns", 64, 2, 4096,
        "most physical tiles side by side in a row that pack_rows and unpack_rows take, a power of two"),
    Key("input", "tokens", 256, 2, 65536,
        "tokens that an input stream of dynamic shape can have, done included, a power of two"),
)
"""All keys but those of [memory] (`MemoryConfig`'s fields; ``preset``, ``clock_mhz``) and [link.depths] (link name =
depth)."""

_FIELDS = {
    ("tile", "size"): "tile", ("tile", "k_per_cycle"): "k_per_cycle", ("tile", "rows_per_cycle"): "rows_per_cycle",
    ("link", "depth"): "link_depth", ("accumulator", "entries"): "accumulator_entries",
    ("scratchpad", "frames"): "scratchpad_frames", ("scratchpad", "page_frames"): "page_frames",
    ("scratchpad", "references"): "references", ("load", "window"): "load_window", ("input", "tokens"): "input_tokens",
    ("rows", "columns"): "row_columns",
}


@dataclass(frozen=True)
class HardwareConfig:
    """Parameters of the hardware; see `KEYS` for meanings. ``link_depths`` overrides ``link_depth`` by link name.

    Raises `ConfigError` for a value that is not allowed.
    """

    tile: int = 16
    k_per_cycle: int | None = None
    rows_per_cycle: int | None = None
    link_depth: int = 2
    link_depths: Mapping[str, int] = field(default_factory=dict)
    accumulator_entries: int = 64
    scratchpad_frames: int = 256
    page_frames: int = 8
    references: int = 4
    load_window: int = 64
    row_columns: int = 64
    input_tokens: int = 256
    memory: MemoryConfig = field(default_factory=MemoryConfig)

    def __post_init__(self) -> None:
        if self.k_per_cycle is None:
            object.__setattr__(self, "k_per_cycle", self.tile)
        if self.rows_per_cycle is None:
            object.__setattr__(self, "rows_per_cycle", max(1, self.tile // 4))
        for key in KEYS:
            key.check(getattr(self, _FIELDS[key.section, key.name]))
        assert self.k_per_cycle is not None and self.rows_per_cycle is not None
        for name, value in (("k_per_cycle", self.k_per_cycle), ("rows_per_cycle", self.rows_per_cycle)):
            if self.tile % value:
                raise ConfigError(f"key 'tile.{name}': {value} vs a divisor of tile.size = {self.tile}")
        if self.scratchpad_frames % self.page_frames:
            raise ConfigError(f"key 'scratchpad.frames': {self.scratchpad_frames} vs a multiple of "
                              f"scratchpad.page_frames = {self.page_frames}")
        for key_name, value in (("scratchpad.page_frames", self.page_frames), ("load.window", self.load_window),
                                ("rows.columns", self.row_columns), ("input.tokens", self.input_tokens)):
            if value & (value - 1):
                raise ConfigError(f"key '{key_name}': {value} vs a power of two")
        depth = next(key for key in KEYS if key.name == "depth")
        for name, value in self.link_depths.items():
            dataclasses.replace(depth, section="link.depths", name=name).check(value)
        object.__setattr__(self, "link_depths", dict(sorted(self.link_depths.items())))

    # Reading

    @staticmethod
    def load(path: str | Path) -> HardwareConfig:
        """Read a TOML file. Raises `ConfigError` if it is missing, malformed, or holds an unknown key or bad value."""
        try:
            text = Path(path).read_text()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not UTF-8 text"
            raise ConfigError(f"hardware configuration '{path}': {reason} vs a readable TOML file") from None
        return HardwareConfig.from_toml(text, str(path))

    @staticmethod
    def from_toml(text: str, origin: str = "hardware configuration") -> HardwareConfig:
        """Parse TOML text; ``origin`` names it in errors."""
        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"{origin}: not TOML ({error}) vs key = value lines in sections") from None
        sections = sorted({key.section for key in KEYS} | {"memory"})
        values: dict[str, Any] = {}
        for section, table in document.items():
            if section not in sections or not isinstance(table, dict):
                raise ConfigError(f"{origin}: unknown section '{section}' vs {', '.join(sections)}")
            if section == "memory":
                values["memory"] = _memory(table, origin)
                continue
            keys = {key.name: key for key in KEYS if key.section == section}
            for name, value in table.items():
                if (section, name) == ("link", "depths"):
                    if not isinstance(value, dict):
                        raise ConfigError(f"{origin}: key 'link.depths': {value!r} vs a table of link name = depth")
                    values["link_depths"] = value
                elif name not in keys:
                    allowed = sorted(keys) + (["depths"] if section == "link" else [])
                    raise ConfigError(f"{origin}: unknown key '{section}.{name}' = {value!r} vs {', '.join(allowed)}")
                else:
                    values[_FIELDS[section, name]] = keys[name].check(value)
        return HardwareConfig(**values)

    # Writing

    def to_toml(self) -> str:
        """The whole configuration as commented TOML; reading it gives an equal configuration."""
        lines: list[str] = []
        section = ""
        for key in KEYS:
            if key.section != section:
                section = key.section
                lines += ["", f"[{section}]"] if lines else [f"[{section}]"]
            lines += [f"# {key.meaning}", f"{key.name} = {getattr(self, _FIELDS[key.section, key.name])}"]
            if key.section == "link":
                lines += ["# depth of single links by name", "[link.depths]"]
                lines += [f"{json.dumps(name)} = {depth}" for name, depth in self.link_depths.items()]
        lines += ["", "[memory]", f"# preset, one of {', '.join(memory_presets())}, stands for the keys below; what is "
                  "given overrides it"]
        for entry in dataclasses.fields(self.memory):
            meaning = entry.metadata.get("meaning") or entry.metadata.get("doc")
            lines += [f"# {meaning}"] if meaning else []
            lines.append(f"{entry.name} = {_toml_value(getattr(self.memory, entry.name))}")
        return "\n".join(lines) + "\n"

    def digest(self) -> str:
        """Hash of the contents (16 hex digits): equal configurations, and only they, have equal digests."""
        text = json.dumps(dataclasses.asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def default_toml(tile: int = 16) -> str:
    """Text of a commented configuration file with all defaults."""
    return "# Hardware configuration of step-hw. Every key may be left out.\n" + HardwareConfig(tile=tile).to_toml()


def _toml_value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml_value(v) for v in value) + "]"
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _memory(table: Mapping[str, Any], origin: str) -> MemoryConfig:
    """The section [memory]: the keys of its ``preset`` (see `memory_presets`), and those given on top."""
    fields = {entry.name: entry for entry in dataclasses.fields(MemoryConfig)}
    defaults = MemoryConfig()
    table = dict(table)
    preset, clock = table.pop("preset", None), table.pop("clock_mhz", None)
    if preset is not None:
        table = {**memory_preset(preset).keys(clock), **table}
    elif clock is not None:
        raise ConfigError(f"{origin}: key 'memory.clock_mhz': {clock!r} vs no preset, whose times it would convert",
                          fix="give a preset, or cycles without a clock")
    for name, value in table.items():
        if name not in fields:
            raise ConfigError(f"{origin}: unknown key 'memory.{name}' = {value!r} vs preset, clock_mhz, "
                              f"{', '.join(fields)}")
        wanted = type(getattr(defaults, name))
        if type(value) is not wanted and not (wanted is float and type(value) is int):
            raise ConfigError(f"{origin}: key 'memory.{name}': {value!r} vs a value of type {wanted.__name__}")
    try:
        return MemoryConfig(**table)
    except ConfigError:
        raise
    except ValueError as error:
        raise ConfigError(f"{origin}: section 'memory': {error}") from None
