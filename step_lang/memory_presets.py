"""Memories by name: public figures of HBM generations as ``[memory]`` sections, from ``memory_presets.toml``.

A banked preset states nanoseconds; its cycles are those of the design's clock, by these rules:

* A timing takes the least number of cycles that is not shorter; the refresh interval the greatest that is not longer.
* A burst is one access of the memory, or a power of two of them, back to back in one row: as few as make its time on
  the data bus a whole number of cycles, at most 2% more than what it takes; the best of all where none does. So the
  bandwidth is the stack's, whatever the clock: at 1 GHz 32 B of HBM2 take 2 cycles, 128 B of HBM2E or HBM3 take 5.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

from .errors import ConfigError
from .memory_config import MemoryConfig

__all__ = ["DEFAULT_CLOCK_MHZ", "MemoryPreset", "memory_preset", "memory_presets"]

DEFAULT_CLOCK_MHZ = 1000
"""Clock of the design where a configuration does not say, MHz."""

_MOST_LOSS = 1.02
"""Time of a burst in whole cycles over its time on the bus that is taken as equal."""


@dataclass(frozen=True)
class MemoryPreset:
    """A memory as published.

    name, meaning, source : what it is, and where its figures are from.
    fixed : keys of ``[memory]`` that no clock changes.
    ns : timings in nanoseconds by key of ``[memory]``; none for a ``simple`` memory.
    pins, gigabits_per_pin, access_bytes : width and rate of a channel's data bus, bytes of one access.
    """

    name: str
    meaning: str
    source: str
    fixed: Mapping[str, Any]
    ns: Mapping[str, float] = field(default_factory=dict)
    pins: int = 0
    gigabits_per_pin: float = 0.0
    access_bytes: int = 0

    @property
    def peak_bytes_per_ns(self) -> float:
        """Bandwidth of all channels, which is GB/s. Only of a banked memory."""
        return self.fixed["channels"] * self.pins * self.gigabits_per_pin / 8

    def keys(self, clock_mhz: int | None = None) -> dict[str, Any]:
        """Keys of ``[memory]`` for a design of ``clock_mhz`` (None: `DEFAULT_CLOCK_MHZ`).

        Raises `ConfigError` for a clock that is none, or one for a memory that is stated in cycles.
        """
        if not self.ns:
            if clock_mhz is not None:
                raise ConfigError(f"key 'memory.clock_mhz': {clock_mhz!r} vs preset '{self.name}', which is stated in "
                                  "cycles", fix="leave the clock out")
            return dict(self.fixed)
        clock_mhz = DEFAULT_CLOCK_MHZ if clock_mhz is None else clock_mhz
        if isinstance(clock_mhz, bool) or not isinstance(clock_mhz, int) or not 1 <= clock_mhz <= 10_000:
            raise ConfigError(f"key 'memory.clock_mhz': {clock_mhz!r} vs an int in 1..10000")
        cycles = {name: max(1, _up(time * clock_mhz / 1000)) for name, time in self.ns.items()}
        cycles["trefi"] = math.floor(self.ns["trefi"] * clock_mhz / 1000)
        burst_bytes, cycles["bl"] = self._burst(clock_mhz)
        return {**self.fixed, "burst_bytes": burst_bytes, **cycles, "tccd": cycles["bl"]}

    def _burst(self, clock_mhz: int) -> tuple[int, int]:
        """Bytes and cycles of a burst."""
        choices = []
        size = self.access_bytes
        while size <= self.fixed["row_bytes"]:
            bus = size * 8 / (self.pins * self.gigabits_per_pin) * clock_mhz / 1000
            choices.append((_up(bus) / bus, size, _up(bus)))
            size *= 2
        good = [choice for choice in choices if choice[0] <= _MOST_LOSS]
        _, size, cycles = good[0] if good else min(choices)
        return size, cycles


def _up(value: float) -> int:
    """The least int that is not less, but for rounding of the float."""
    return math.ceil(value - 1e-9)


@cache
def memory_presets() -> Mapping[str, MemoryPreset]:
    """All presets by name, in order of the file."""
    document = tomllib.loads(Path(__file__).with_name("memory_presets.toml").read_text())
    keys = {entry.name for entry in fields(MemoryConfig)}
    presets = {}
    for name, table in document.items():
        fixed = {key: table.pop(key) for key in sorted(keys & set(table))}
        presets[name] = MemoryPreset(name=name, fixed=fixed, **table)
    return presets


def memory_preset(name: str) -> MemoryPreset:
    """The preset of that name. Raises `ConfigError`, which names all."""
    presets = memory_presets()
    if not isinstance(name, str) or name not in presets:
        raise ConfigError(f"key 'memory.preset': {name!r} vs {', '.join(presets)}")
    return presets[name]
