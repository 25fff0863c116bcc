"""A machine of tile fidelity by name or from a TOML file."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path

from step_lang.errors import ConfigError
from step_lang.hwconfig import HardwareConfig

from .machine import PAPER_MEMORY, BeatMachine, Machine, RooflineMachine

__all__ = ["machine_of"]

_KEYS = tuple(f.name for f in dataclasses.fields(RooflineMachine) if f.name != "memory")


def machine_of(name: str, hw: HardwareConfig) -> Machine:
    """``"hardware"``: what ``hw`` describes; ``"paper"``: the roofline machine of the paper's experiments; else a TOML
    file with a section ``[roofline]`` (`RooflineMachine`) and, as in a hardware configuration, ``[memory]``; what it
    leaves out is the paper's.

    Raises `ConfigError` naming file, key and what is allowed.
    """
    if name == "hardware":
        return BeatMachine(hw)
    if name == "paper":
        return RooflineMachine()
    path = Path(name)
    try:
        document = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise ConfigError(f"machine '{path}': {reason} vs 'hardware', 'paper' or a readable TOML file") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"machine '{path}': not TOML ({error}) vs key = value lines in sections") from None
    values = document.pop("roofline", {})
    memory = document.pop("memory", None)
    if document:
        raise ConfigError(f"machine '{path}': unknown section '{next(iter(document))}' vs memory, roofline")
    for key, value in values.items():
        if key not in _KEYS:
            raise ConfigError(f"machine '{path}': unknown key 'roofline.{key}' vs {', '.join(_KEYS)}")
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ConfigError(f"machine '{path}': key 'roofline.{key}': {value!r} vs an int of at least 1")
    made = PAPER_MEMORY
    if memory is not None:
        paper = {f.name: getattr(PAPER_MEMORY, f.name) for f in dataclasses.fields(PAPER_MEMORY)}
        known = {} if "preset" in memory else paper
        made = HardwareConfig.from_toml(_toml({"memory": {**known, **memory}}), str(path)).memory
    return RooflineMachine(**values, memory=made)


def _toml(document: dict) -> str:
    import tomli_w

    return tomli_w.dumps(document)
