"""The points of ``step-hw sweep``: from options to tasks that a worker can take."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from sim.sweep.points import Axis, Grid, Point
from step_lang import Program
from step_lang.errors import BadParameter, ConfigError, SweepError
from step_lang.hwconfig import KEYS, HardwareConfig
from step_lang.memory_config import MemoryConfig

from .options import calibration_constants, configuration
from .program_file import ProgramFile, parse_value

__all__ = ["ProgramSource", "axes_of", "grid_of", "hardware_of"]


@dataclass(frozen=True)
class ProgramSource:
    """How a worker builds the program: the file by its absolute path and the hash of its text, the builder's name and
    the seed of input streams. Calling it builds."""

    path: str
    function: str
    digest: str
    seed: int

    @classmethod
    def of(cls, file: ProgramFile, seed: int) -> ProgramSource:
        return cls(str(file.path.resolve()), file.function, _digest(file.path), seed)

    def __call__(self, parameters: Mapping[str, Any]) -> tuple[Program, Mapping[str, Any]]:
        file = _opened(self)
        program = file.build(**parameters)
        return program, file.stream_inputs(program, self.seed, **parameters)


@lru_cache(maxsize=8)
def _opened(source: ProgramSource) -> ProgramFile:
    path = Path(source.path)
    if not path.is_file():
        raise SweepError(f"program file on a worker: {source.path!r} vs an existing file",
                         fix="put it where all workers see it")
    if _digest(path) != source.digest:
        raise SweepError(f"program file {path.name} on a worker: other text vs what the sweep began with",
                         fix="run the sweep again")
    return ProgramFile.open(f"{source.path}:{source.function}")


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def axes_of(settings: Sequence[str], overrides: Sequence[str]) -> tuple[Axis, ...]:
    """``name=v1,v2`` of the program and ``section.key=v1,v2`` of the hardware as axes. Raises `BadParameter`,
    `ConfigError` for what has no ``=`` or names a key that no configuration has."""
    axes = []
    for hardware, pairs in ((False, settings), (True, overrides)):
        for pair in pairs:
            name, equals, text = pair.partition("=")
            if hardware:
                _check_key(name if equals else "", pair)
            elif not equals or not name.isidentifier():
                raise BadParameter(f"--set {pair}: {pair!r} vs name=value or name=value,value")
            axes.append(Axis(name, tuple(map(parse_value, text.split(","))), hardware))
    return tuple(axes)


def _check_key(name: str, pair: str) -> None:
    memory = ["preset", "clock_mhz", *MemoryConfig.__dataclass_fields__]
    known = [*(f"{key.section}.{key.name}" for key in KEYS), *(f"memory.{field}" for field in memory)]
    if name in known or name.startswith("link.depths."):
        return
    section, dot, _ = name.partition(".")
    if not dot:
        raise ConfigError(f"--hw {pair}: {pair!r} vs section.key=value or section.key=value,value")
    nearest = [key for key in known if key.startswith(f"{section}.")] or sorted({key.split(".")[0] for key in known})
    raise ConfigError(f"--hw {pair}: unknown key '{name}' vs {', '.join(nearest)}")


def grid_of(file: ProgramFile, axes: Sequence[Axis], named: str | None) -> Grid:
    """The grid of ``axes`` over the program file's parameter sets ``SWEEPS[named]``. Raises `BadParameter` for a name
    that the builder does not take."""
    grid = Grid(tuple(axes), tuple(file.sweep(named)) if named else ({},))
    for chosen in grid.sets:
        file.check_parameters([*chosen, *(axis.name for axis in axes if not axis.hardware)])
    return grid


def hardware_of(points: Sequence[Point], config: Path | None, calibration: Path | None
                ) -> list[tuple[HardwareConfig | str, dict[str, int]]]:
    """Hardware (or why that point has none) and calibration constants of each point. Raises `ConfigError` when no point
    has any, `CalibrationError` for a calibration that is not of every point's hardware."""
    known: dict[tuple, tuple[HardwareConfig | str, dict[str, int]]] = {}
    found, error = [], None
    for point in points:
        key = tuple((name, type(value), value) for name, value in point.hardware.items())
        if key not in known:
            try:
                hw = configuration(config, [f"{name}={value}" for name, value in point.hardware.items()])
                known[key] = hw, calibration_constants(calibration, hw)[0]
            except ConfigError as raised:
                error = error or raised
                known[key] = str(raised), {}
        found.append(known[key])
    if error is not None and all(isinstance(hw, str) for hw, _ in known.values()):
        raise error
    return found
