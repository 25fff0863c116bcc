"""The calibration file: what micro-benchmarks on RTL told about the constants that no unit states."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from step_lang.errors import CalibrationError
from step_lang.hwconfig import HardwareConfig

from .memory import CALIBRATION

__all__ = ["VERSION", "Calibration", "Comparison", "summary"]

VERSION = 1
"""Version of the file format; a file of another version is outdated and must be measured again."""


@dataclass(frozen=True)
class Comparison:
    """RTL against model on one program: cycles from first off-chip read to last off-chip write."""

    name: str
    rtl_cycles: int
    model_cycles: int

    @property
    def error(self) -> float:
        """Relative error of the model, signed."""
        return (self.model_cycles - self.rtl_cycles) / self.rtl_cycles


def summary(rows: Sequence[Comparison]) -> dict[str, float]:
    """``pearson`` (1.0 for fewer than two different points), ``mape`` and ``max_error`` (absolute, as fractions)."""
    rtl = np.array([row.rtl_cycles for row in rows], dtype=float)
    model = np.array([row.model_cycles for row in rows], dtype=float)
    errors = np.abs([row.error for row in rows])
    varied = len(rows) > 1 and rtl.std() > 0 and model.std() > 0
    return {
        "pearson": float(np.corrcoef(rtl, model)[0, 1]) if varied else 1.0,
        "mape": float(errors.mean()),
        "max_error": float(errors.max()),
    }


@dataclass
class Calibration:
    """Fitted constants, the hardware they belong to, and how well they do.

    hardware : ``HardwareConfig.digest()`` of the measured hardware
    constants : by name, in cycles (``sim.memory.CALIBRATION`` lists them)
    fitted, held_out : comparisons on the micro-benchmarks fitted to, and on programs that were not
    """

    hardware: str
    constants: dict[str, int] = field(default_factory=dict)
    fitted: list[Comparison] = field(default_factory=list)
    held_out: list[Comparison] = field(default_factory=list)

    def to_toml(self) -> str:
        """Text of the file; the same for the same measurements."""
        document: dict[str, Any] = {"version": VERSION, "hardware": self.hardware, "constants": self.constants}
        for title, rows in (("fitted", self.fitted), ("held_out", self.held_out)):
            if rows:
                document[title] = [
                    {
                        "name": r.name,
                        "rtl_cycles": r.rtl_cycles,
                        "model_cycles": r.model_cycles,
                        "error": round(r.error, 6),
                    }
                    for r in rows
                ]
        return (
            "# Calibration of the step-hw performance model, written by 'step-hw calibrate'.\n"
            "# constants: cycles that no unit states, fitted to micro-benchmarks on RTL.\n" + tomli_w.dumps(document)
        )

    def save(self, path: Path) -> None:
        """Write atomically. Raises `CalibrationError` when the place is not writable."""
        partial = path.with_name(path.name + ".part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            partial.write_text(self.to_toml())
            partial.replace(path)
        except OSError as error:
            raise CalibrationError(f"calibration file {path}: {error.strerror} vs a writable place") from error

    @classmethod
    def load(cls, path: Path, hw: HardwareConfig) -> Calibration:
        """Read and check. Raises `CalibrationError` for a missing, corrupt or outdated file or other hardware's."""
        again = "run 'step-hw calibrate' with this configuration"
        try:
            document = tomllib.loads(path.read_text())
        except FileNotFoundError:
            raise CalibrationError(f"calibration file {path}: missing vs an existing file", fix=again) from None
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise CalibrationError(f"calibration file {path} is corrupt: {error}", fix=again) from None
        if document.get("version") != VERSION:
            raise CalibrationError(
                f"calibration file {path} is outdated: version {document.get('version')!r} vs {VERSION}", fix=again
            )
        if document.get("hardware") != hw.digest():
            raise CalibrationError(
                f"calibration file {path} is of other hardware: {document.get('hardware')!r} vs {hw.digest()!r}",
                fix=again,
            )
        constants = document.get("constants")
        if (
            not isinstance(constants, Mapping)
            or set(constants) != set(CALIBRATION)
            or not all(isinstance(v, int) and not isinstance(v, bool) for v in constants.values())
        ):
            raise CalibrationError(
                f"calibration file {path} is corrupt: constants {constants!r} vs ints for {', '.join(CALIBRATION)}",
                fix=again,
            )
        try:
            rows = {
                title: [
                    Comparison(str(r["name"]), int(r["rtl_cycles"]), int(r["model_cycles"]))
                    for r in document.get(title, [])
                ]
                for title in ("fitted", "held_out")
            }
        except (KeyError, TypeError, ValueError) as error:
            raise CalibrationError(
                f"calibration file {path} is corrupt: {error!r} in its comparisons", fix=again
            ) from None
        return cls(document["hardware"], dict(constants), rows["fitted"], rows["held_out"])
