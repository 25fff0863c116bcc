"""Errors a user can cause. Each message is one line that names the operator, its source line, the two things that
disagree and, where there is one, the fix."""

from __future__ import annotations

import os
from typing import Any

__all__ = [
    "ArbitrationError",
    "BadParameter",
    "BuildError",
    "CalibrationError",
    "ConfigError",
    "DeadlockError",
    "HardwareTooSmall",
    "MisalignedStreams",
    "ProgramError",
    "RtlError",
    "ShapeMismatch",
    "SimulatorError",
    "StepError",
    "StreamProtocolError",
    "SweepError",
    "TensorError",
    "TileDoesNotDivide",
    "TypeMismatch",
    "UnconnectedStream",
    "UnknownFunction",
    "UnusedStream",
    "ViewOutOfRange",
]


class StepError(Exception):
    """Base of every error a user's mistake raises.

    Parameters
    ----------
    message : what disagrees, as ``"what: a vs b"``.
    operator : the operator it happened at, anything with ``kind``, ``name`` and ``source`` (a ``"file.py:12"``).
    source : overrides the operator's source line.
    fix : what the user can do about it.
    """

    _one_line = True

    def __init__(self, message: str, *, operator: Any = None, source: str | None = None, fix: str | None = None):
        self.message = message
        self.operator = operator
        self.source = source if source is not None else getattr(operator, "source", None)
        self.fix = fix
        super().__init__(str(self))

    def at(self, operator: Any) -> StepError:
        """The same error placed at ``operator``, unless it already has a place (functions do not know theirs)."""
        if self.operator is None:
            self.operator = operator
            self.source = self.source if self.source is not None else operator.source
            self.args = (str(self),)
        return self

    def __str__(self) -> str:
        text = self.message
        place = ""
        if self.operator is not None:
            place = f"{self.operator.kind} '{self.operator.name}'"
        if self.source:
            path, _, line = self.source.rpartition(":")
            short = f"{os.path.basename(path)}:{line}" if path else self.source
            place = f"{place} ({short})" if place else short
        if place:
            text = f"{place}: {text}"
        if self.fix:
            text = f"{text}; fix: {self.fix}"
        return " ".join(text.split()) if self._one_line else text


class ShapeMismatch(StepError):
    """Two shapes, ranks or extents that must agree do not."""


class TypeMismatch(StepError):
    """Two data types that must agree do not."""


class TileDoesNotDivide(StepError):
    """A tensor's size is not a multiple of the tile's."""


class ViewOutOfRange(StepError):
    """An affine view names a tile outside its grid or buffer."""


class UnusedStream(StepError):
    """A stream that no operator consumes."""


class UnconnectedStream(StepError):
    """A stream that nothing produces, or that belongs to another program."""


class UnknownFunction(StepError):
    """A function that does not exist, or that has no hardware where hardware is asked for."""


class BadParameter(StepError):
    """A parameter outside its range."""


class ProgramError(StepError):
    """A program as a whole is not usable: empty, a name used twice, a tensor both read and written."""


class TensorError(StepError):
    """A tensor or input missing at run time, or of the wrong shape or dtype."""


class MisalignedStreams(StepError):
    """Streams whose run-time stops must agree do not."""


class ArbitrationError(StepError):
    """An arbitration trace that does not fit the run it is replayed on."""


class StreamProtocolError(StepError):
    """A token stream that breaks the rules of streams."""


class HardwareTooSmall(StepError):
    """A program that does not fit the hardware configuration."""


class ConfigError(StepError):
    """A hardware configuration that is not usable."""


class CalibrationError(StepError):
    """A calibration file that is corrupt, outdated or for other hardware."""


class SimulatorError(StepError):
    """A simulator that is missing, too old, or fails."""


class BuildError(StepError):
    """A build that cannot be written or does not compile."""


class DeadlockError(StepError):
    """Links that wait for one another in a cycle; the message has a line for each."""

    _one_line = False


class SweepError(StepError):
    """A sweep that cannot begin or go on: its scheduler, its workers or its search."""


class RtlError(StepError):
    """A hardware unit that raised its sticky error code, or RTL that differs from the interpreter."""
