"""The points of ``step-hw sweep``: from options to tasks that a worker can take."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from sim.sweep.points import Axis, Grid, Point
from sim.tile.machine import RooflineMachine
from step_lang.errors import BadParameter, ConfigError
from step_lang.hwconfig import HardwareConfig

from .machines import check_key, roofline_from
from .options import calibration_constants, configuration
from .program_file import ProgramFile, parse_value

__all__ = ["axes_of", "grid_of", "hardware_of"]


def axes_of(settings: Sequence[str], overrides: Sequence[str], machine: str = "hardware") -> tuple[Axis, ...]:
    """``name=v1,v2`` of the program and ``section.key=v1,v2`` of the hardware, or of a roofline ``machine``, as axes.
    Raises `BadParameter`, `ConfigError` for what has no ``=`` or names a key that there is not."""
    axes = []
    for hardware, pairs in ((False, settings), (True, overrides)):
        for pair in pairs:
            name, equals, text = pair.partition("=")
            if hardware:
                check_key(name if equals else "", pair, machine)
            elif not equals or not name.isidentifier():
                raise BadParameter(f"--set {pair}: {pair!r} vs name=value or name=value,value")
            values = text.split(",")
            if len(values) > 1 and "" in map(str.strip, values):
                raise BadParameter(f"{'--hw' if hardware else '--set'} {pair}: an empty value vs values between commas")
            axes.append(Axis(name, tuple(map(parse_value, values)), hardware))
    return tuple(axes)


def grid_of(file: ProgramFile, axes: Sequence[Axis], named: str | None) -> Grid:
    """The grid of ``axes`` over the program file's parameter sets ``SWEEPS[named]``. Raises `BadParameter` for a name
    that the builder does not take."""
    grid = Grid(tuple(axes), tuple(file.sweep(named)) if named else ({},))
    for chosen in grid.sets:
        file.check_parameters([*chosen, *(axis.name for axis in axes if not axis.hardware)])
    return grid


Hardware: TypeAlias = HardwareConfig | RooflineMachine | str
"""A point's hardware, or why it has none."""


def hardware_of(points: Sequence[Point], machine: str, config: Path | None, calibration: Path | None
                ) -> list[tuple[Hardware, dict[str, int]]]:
    """Hardware and calibration constants of each point; on a ``machine`` other than ``"hardware"`` there are no such
    constants. Raises `ConfigError` when no point has any hardware, `CalibrationError` for a calibration that is not of
    every point's hardware."""
    known: dict[tuple, tuple[Hardware, dict[str, int]]] = {}
    found, error = [], None
    for point in points:
        key = tuple((name, type(value), value) for name, value in point.hardware.items())
        if key not in known:
            try:
                if machine == "hardware":
                    hw = configuration(config, [f"{name}={value}" for name, value in point.hardware.items()])
                    known[key] = hw, calibration_constants(calibration, hw)[0]
                else:
                    known[key] = roofline_from(machine, point.hardware), {}
            except ConfigError as raised:
                error = error or raised
                known[key] = str(raised), {}
        found.append(known[key])
    if error is not None and all(isinstance(hw, str) for hw, _ in known.values()):
        raise error
    return found
