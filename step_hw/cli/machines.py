"""The machine of tile fidelity that options describe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from step_lang.errors import BadParameter, ConfigError
from step_lang.hwconfig import KEYS, HardwareConfig
from step_lang.memory_config import MemoryConfig

from .options import configuration
from .program_file import parse_value

if TYPE_CHECKING:
    from sim.tile.machine import Machine, RooflineMachine

__all__ = ["MACHINE", "check_fidelity", "check_key", "machine_from", "roofline_from"]

MACHINE = "hardware|paper|FILE.toml"
"""What --machine takes."""


def check_fidelity(fidelity: str, machine: str, config: Path | None, calibration: Path | None) -> None:
    """Raise `BadParameter` for options that have nothing to act on: a machine at beat fidelity, constants of beat
    fidelity at tile fidelity, a hardware configuration where another machine is meant."""
    if machine != "hardware" and fidelity != "tile":
        raise BadParameter(f"--machine {machine} vs --fidelity {fidelity}", fix="add --fidelity tile")
    if calibration is not None and fidelity == "tile":
        raise BadParameter("--calibration: constants of beat fidelity vs --fidelity tile", fix="leave it out")
    if machine != "hardware" and config is not None:
        raise BadParameter(f"--machine {machine} vs --config, which is of the hardware",
                           fix="leave it out; --hw takes keys of the machine")


def machine_from(name: str, config: Path | None, overrides: Sequence[str]) -> Machine:
    """The machine ``name`` with keys of --hw. Raises `ConfigError`."""
    from sim.tile import BeatMachine

    if name == "hardware":
        return BeatMachine(configuration(config, overrides))
    for pair in overrides:
        key, equals, _ = pair.partition("=")
        check_key(key if equals else "", pair, name)
    return roofline_from(name, {key: parse_value(value) for key, _, value in (p.partition("=") for p in overrides)})


def check_key(name: str, pair: str, machine: str) -> None:
    """Raise `ConfigError` for a ``name`` that is no key of the hardware, or of a roofline ``machine``; ``pair`` is what
    --hw was given."""
    from sim.tile.machine_file import ROOFLINE_KEYS

    known = [f"memory.{field}" for field in ("preset", "clock_mhz", *MemoryConfig.__dataclass_fields__)]
    if machine == "hardware":
        known = [f"{key.section}.{key.name}" for key in KEYS] + known
        if name.startswith("link.depths."):
            return
    else:
        known = [f"roofline.{key}" for key in ROOFLINE_KEYS] + known
    if name in known:
        return
    section, dot, _ = name.partition(".")
    if not dot:
        raise ConfigError(f"--hw {pair}: {pair!r} vs section.key=value or section.key=value,value")
    nearest = [key for key in known if key.startswith(f"{section}.")] or sorted({key.split(".")[0] for key in known})
    raise ConfigError(f"--hw {pair}: unknown key '{name}' vs {', '.join(nearest)}",
                      fix="" if machine == "hardware" else f"--machine {machine} has keys of its own")


def roofline_from(machine: str, overrides: Mapping[str, Any]) -> RooflineMachine:
    """The roofline machine ``"paper"`` or of a file, with some keys overridden. Raises `ConfigError`."""
    import tomllib

    from sim.tile.machine_file import machine_of, roofline_machine

    document: dict[str, Any] = {}
    if machine != "paper":
        machine_of(machine, HardwareConfig())  # errors in the file are told as the file's
        document = tomllib.loads(Path(machine).read_text())
    for name, value in overrides.items():
        section, _, key = name.partition(".")
        document.setdefault(section, {})[key] = value
    return roofline_machine(document, "--hw" if overrides else f"machine '{machine}'")
