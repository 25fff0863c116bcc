"""A machine of tile fidelity by name or from a TOML file."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from step_lang.errors import ConfigError
from step_lang.hwconfig import HardwareConfig

from .machine import PAPER_MEMORY, BeatMachine, Machine, RooflineMachine

__all__ = ["ROOFLINE_KEYS", "machine_of", "roofline_machine"]

ROOFLINE_KEYS = tuple(f.name for f in dataclasses.fields(RooflineMachine) if f.name != "memory")


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
    return roofline_machine(document, f"machine '{path}'")


def roofline_machine(document: Mapping[str, Any], origin: str) -> RooflineMachine:
    """The machine of sections ``roofline`` and ``memory``; ``origin`` names them in errors. Raises `ConfigError`."""
    document = dict(document)
    values = document.pop("roofline", {})
    memory = document.pop("memory", None)
    if document:
        raise ConfigError(f"{origin}: unknown section '{next(iter(document))}' vs memory, roofline")
    for section, table in (("roofline", values), ("memory", memory if memory is not None else {})):
        if not isinstance(table, Mapping):
            raise ConfigError(f"{origin}: {section} = {table!r} vs a section [{section}] with keys")
    for key, value in values.items():
        if key not in ROOFLINE_KEYS:
            raise ConfigError(f"{origin}: unknown key 'roofline.{key}' vs {', '.join(ROOFLINE_KEYS)}")
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ConfigError(f"{origin}: key 'roofline.{key}': {value!r} vs an int of at least 1")
    made = PAPER_MEMORY
    if memory is not None:
        paper = {f.name: getattr(PAPER_MEMORY, f.name) for f in dataclasses.fields(PAPER_MEMORY)}
        known = {} if "preset" in memory else paper
        made = HardwareConfig.from_toml(_toml({"memory": {**known, **memory}}), origin).memory
    return RooflineMachine(**values, memory=made)


def _toml(document: dict) -> str:
    import tomli_w

    return tomli_w.dumps(document)
